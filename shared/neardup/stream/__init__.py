"""Stages of the streaming services, one package per service."""

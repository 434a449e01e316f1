"""The streaming services: one package for the stage of each service."""

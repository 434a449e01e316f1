"""Manifests of the services, and the alert rules for the Prometheus operator."""

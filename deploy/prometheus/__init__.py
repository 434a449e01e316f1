"""Configuration and alert rules of Prometheus, and its programs without Docker."""

"""The canary service: altered copies of recent pages, planted to measure recall."""

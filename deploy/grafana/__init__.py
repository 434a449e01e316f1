"""The Grafana dashboards, as Python and as the JSON that is generated from it."""

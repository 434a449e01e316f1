"""The status of a deployment, of a worker or of a state directory."""

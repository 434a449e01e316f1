"""Status of a deployment, read from a state directory or from running workers."""

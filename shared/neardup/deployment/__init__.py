"""The composition root: the services, stages and topics of a deployment, built from its settings."""

"""The Spark engine of the offline pass. Its results equal those of the local engine."""

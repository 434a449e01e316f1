"""The Spark engine of the offline pass, with results equal to those of the local engine."""

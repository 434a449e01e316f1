"""Apache Kafka without Docker."""

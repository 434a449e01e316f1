"""Kafka, on aiokafka: the log that services run over, and what commands ask of a cluster. Nothing else knows Kafka."""

from neardup.log.kafka.connecting import connection
from neardup.log.kafka.kafka_log import KafkaLog
from neardup.log.kafka.looking import look
from neardup.log.kafka.partitions import KafkaPartitions

__all__ = ["KafkaLog", "KafkaPartitions", "connection", "look"]

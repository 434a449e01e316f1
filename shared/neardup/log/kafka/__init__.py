"""The Kafka log of the services and the queries of commands to a cluster. Only this package imports aiokafka."""

from neardup.log.kafka.connecting import connection
from neardup.log.kafka.kafka_log import KafkaLog
from neardup.log.kafka.looking import look
from neardup.log.kafka.partitions import KafkaPartitions

__all__ = ["KafkaLog", "KafkaPartitions", "connection", "look"]

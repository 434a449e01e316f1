"""The log that stages read from and write to: one contract, a Kafka and an in-process implementation.

`contract` says what every log guarantees, `kafka` and `memory` keep it, and one test suite holds both to it.
"""

from neardup.log.contract import Consumer, Listener, Log, Output, Partition, PlainRecord, Record, TopicSpec

__all__ = ["Consumer", "Listener", "Log", "Output", "Partition", "PlainRecord", "Record", "TopicSpec"]

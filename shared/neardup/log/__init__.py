"""The log that stages read from and write to: one contract, a Kafka and an in-process implementation.

`contract` defines the guarantees, `kafka` and `memory` implement them, and one test suite checks both.
"""

from neardup.log.contract import Consumer, Listener, Log, Output, Partition, PlainRecord, Record, TopicSpec

__all__ = ["Consumer", "Listener", "Log", "Output", "Partition", "PlainRecord", "Record", "TopicSpec"]

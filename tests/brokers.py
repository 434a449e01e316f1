"""Finds a broker for the tests: what the operator named, Docker, Maven, or librdkafka's mock, in that order."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import broker as kafka

VERSION = os.environ.get("NEARDUP_TEST_KAFKA_VERSION", kafka.NEWEST)
REQUIRE_REAL = os.environ.get("NEARDUP_TEST_REQUIRE_REAL_BROKER") == "1"


@dataclass(frozen=True)
class FoundBroker:
    """A broker and how it was found. `real` is false for the mock cluster."""

    bootstrap: str
    about: str
    real: bool


@contextmanager
def find_broker(data: Path) -> Iterator[FoundBroker]:
    """A running broker while the context is open. Raises RuntimeError if only the mock is left and not allowed."""
    named = os.environ.get("NEARDUP_BROKER")
    if named:
        yield FoundBroker(named, f"NEARDUP_BROKER={named}", real=True)
    elif _docker_runs():
        with _container() as found:
            yield found
    elif kafka.available():
        with kafka.Cluster(data, version=VERSION) as cluster:
            yield FoundBroker(cluster.bootstrap, f"Apache Kafka {VERSION} from Maven", real=True)
    elif REQUIRE_REAL:
        raise RuntimeError(
            "NEARDUP_TEST_REQUIRE_REAL_BROKER=1, but there is no NEARDUP_BROKER, Docker, or Java with Maven"
        )
    else:
        with _mock() as found:
            yield found


def _docker_runs() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=30).returncode == 0


@contextmanager
def _container() -> Iterator[FoundBroker]:
    from testcontainers.kafka import KafkaContainer

    with KafkaContainer().with_kraft() as container:
        yield FoundBroker(container.get_bootstrap_server(), f"Docker, {container.image}", real=True)


@contextmanager
def _mock() -> Iterator[FoundBroker]:
    import confluent_kafka

    producer = confluent_kafka.Producer({"test.mock.num.brokers": 1})
    (node,) = producer.list_topics(timeout=10).brokers.values()
    about = f"librdkafka {confluent_kafka.libversion()[0]} mock cluster: one member a group, no real topics or restarts"
    yield FoundBroker(f"{node.host}:{node.port}", about, real=False)
    del producer

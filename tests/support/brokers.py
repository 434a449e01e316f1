"""Finds a broker for the tests: the one in NEARDUP_BROKER, Docker, Maven, or librdkafka's mock, in that order."""

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.kafka import broker as kafka
from tests.support.containers import ContainerCluster, image_of, obstacle

VERSION = os.environ.get("NEARDUP_TEST_KAFKA_VERSION", kafka.NEWEST)
REQUIRE_REAL = os.environ.get("NEARDUP_TEST_REQUIRE_REAL_BROKER") == "1"


@dataclass(frozen=True)
class FoundBroker:
    """A broker and how it was found. `real` is false for the mock cluster."""

    bootstrap: str
    about: str
    real: bool


@dataclass(frozen=True)
class Way:
    """A way to run Apache Kafka on this machine. If there is none, `cluster` is None and `about` gives the reason."""

    about: str
    cluster: type[kafka.Cluster] | None


@contextmanager
def find_broker(data: Path, version: str = VERSION) -> Iterator[FoundBroker]:
    """Provide a running broker while the context is open.

    Raises RuntimeError if only the mock cluster is available and NEARDUP_TEST_REQUIRE_REAL_BROKER forbids it.
    """
    named = os.environ.get("NEARDUP_BROKER")
    if named:
        yield FoundBroker(named, f"NEARDUP_BROKER={named}", real=True)
        return
    way = find_way(version)
    if way.cluster:
        with way.cluster(data, version=version) as cluster:
            yield FoundBroker(cluster.bootstrap, way.about, real=True)
    elif REQUIRE_REAL:
        raise RuntimeError(f"NEARDUP_TEST_REQUIRE_REAL_BROKER=1, but NEARDUP_BROKER is not set, {way.about}")
    else:
        with _mock() as found:
            yield found


@functools.cache
def find_way(version: str = VERSION) -> Way:
    """Return the way to run brokers on this machine. Containers are preferred to Maven. Pulls the image if needed."""
    reason = obstacle(version)
    if reason is None:
        return Way(f"Apache Kafka {version} in Docker ({image_of(version)})", ContainerCluster)
    if kafka.available():
        return Way(f"Apache Kafka {version} from Maven ({reason})", kafka.Cluster)
    return Way(f"{reason}, and Java or Maven is missing", None)


def own_cluster(data: Path, **options: Any) -> kafka.Cluster:
    """Return a cluster for one test, not yet started. Skip the test if this machine cannot run a cluster."""
    way = find_way()
    if way.cluster:
        return way.cluster(data, version=VERSION, **options)
    if REQUIRE_REAL:
        pytest.fail(f"NEARDUP_TEST_REQUIRE_REAL_BROKER=1, but this test cannot start a broker of its own: {way.about}")
    pytest.skip(f"needs a broker of its own: {way.about}")


@contextmanager
def _mock() -> Iterator[FoundBroker]:
    import confluent_kafka

    producer = confluent_kafka.Producer({"test.mock.num.brokers": 1})
    (node,) = producer.list_topics(timeout=10).brokers.values()
    about = f"librdkafka {confluent_kafka.libversion()[0]} mock cluster: one member per group, no topics, no restart"
    yield FoundBroker(f"{node.host}:{node.port}", about, real=False)
    del producer

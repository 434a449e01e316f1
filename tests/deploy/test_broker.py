"""Tests of clusters without Docker: data survives a restart, and three nodes survive the loss of one."""

import asyncio
from pathlib import Path

import pytest

from deploy.kafka import broker as kafka
from neardup.errors import BrokerUnreachable
from neardup.log import Output, TopicSpec
from neardup.log.kafka import KafkaLog
from neardup.settings import Settings
from tests.log.test_contract import Recorder, join, read
from tests.support.brokers import VERSION
from tests.support.containers import ContainerCluster, obstacle

pytestmark = pytest.mark.real_broker
needs_maven = pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven to run Kafka without Docker")


@pytest.fixture(params=[pytest.param(kafka.Cluster, marks=needs_maven), ContainerCluster])
def kind(request: pytest.FixtureRequest) -> type[kafka.Cluster]:
    """Return each kind of cluster that this machine can run."""
    if request.param is ContainerCluster and (reason := obstacle(VERSION)):
        pytest.skip(f"needs Docker: {reason}")
    return request.param  # type: ignore[no-any-return]


async def sent(cluster: kafka.Cluster, start: int, count: int, replication: int = 1) -> None:
    configs = {"min.insync.replicas": "2"} if replication > 1 else {}
    async with KafkaLog(Settings(broker=cluster.bootstrap)) as log:
        await log.create_topics([TopicSpec("numbers", 1, replication, configs)])
        await log.send([Output("numbers", 0, None, b"%d" % number) for number in range(start, start + count)])


async def received(cluster: kafka.Cluster, count: int) -> list[int]:
    async with KafkaLog(Settings(broker=cluster.bootstrap)) as log:
        consumer, recorder = await join(log, "numbers", listener=Recorder())
        try:
            return [int(record.value or b"") for record in await read(consumer, recorder, count, seconds=60)]
        finally:
            await consumer.close()


async def test_data_survives_a_stop_and_a_kill(kind: type[kafka.Cluster], tmp_path: Path) -> None:
    with kind(tmp_path, version=VERSION) as cluster:
        await sent(cluster, 0, 100)
        await asyncio.to_thread(cluster.kill)
        with pytest.raises(
            BrokerUnreachable, match=r"at 127\.0\.0\.1:\d+ .*no program listens there; check NEARDUP_BROKER"
        ):
            await sent(cluster, 0, 1)
        await asyncio.to_thread(cluster.start)
        await sent(cluster, 100, 100)
        await asyncio.to_thread(cluster.restart)
        assert await received(cluster, 200) == list(range(200))


async def test_three_nodes_survive_the_loss_of_one(kind: type[kafka.Cluster], tmp_path: Path) -> None:
    with kind(tmp_path, version=VERSION, nodes=3) as cluster:
        await sent(cluster, 0, 100, replication=3)
        # The first group creates Kafka's internal topic for offsets, which needs all three nodes.
        assert await received(cluster, 100) == list(range(100))
        await asyncio.to_thread(cluster.kill, cluster.nodes[0])
        await sent(cluster, 100, 100, replication=3)
        await asyncio.to_thread(cluster.start, cluster.nodes[0])
        await asyncio.to_thread(cluster.kill, cluster.nodes[1])
        assert await received(cluster, 200) == list(range(200))
        # Two nodes cannot shut down cleanly while the third is down.
        await asyncio.to_thread(cluster.kill)


@needs_maven
def test_a_version_that_does_not_exist_is_a_clear_error() -> None:
    with pytest.raises(kafka.BrokerError, match=r"Maven could not fetch Kafka 0\.0\.1"):
        kafka.jars("0.0.1")

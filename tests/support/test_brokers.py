"""Tests of the broker that the tests find: it has the required properties and leaves no container behind."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testcontainers.core.docker_client import DockerClient

from deploy.kafka import broker as kafka
from tests.log.rights import rdkafka
from tests.support import brokers, containers
from tests.support.brokers import FoundBroker, find_broker, find_way, own_cluster
from tests.support.container_remover import LABEL
from tests.support.containers import ContainerCluster, obstacle, variable_of

ROOT = Path(__file__).parents[2]
NO_IMAGE = "apache/kafka:0.0.1-there-is-no-such-version"
START_AND_WAIT = """
import sys, time
from pathlib import Path
from tests.support.containers import ContainerCluster
with ContainerCluster(Path(sys.argv[1])) as cluster:
    print(cluster._label, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def docker() -> None:
    """Skip the test unless brokers can run in containers."""
    if reason := obstacle(brokers.VERSION):
        pytest.skip(f"needs Docker: {reason}")


@pytest.fixture(autouse=True)
def _forget_what_was_found() -> Iterator[None]:
    find_way.cache_clear()
    yield
    find_way.cache_clear()


@pytest.fixture
def no_image(docker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the engine fail to pull the image."""
    monkeypatch.setattr(containers, "image_of", lambda _: NO_IMAGE)


def described(bootstrap: str) -> dict[str, str]:
    resource = rdkafka.ConfigResource(rdkafka.ResourceType.BROKER, "1")
    client = rdkafka.AdminClient({"bootstrap.servers": bootstrap})
    answer = client.describe_configs([resource])[resource].result(timeout=30)
    return {name: str(entry.value) for name, entry in answer.items()}


@pytest.mark.kafka
def test_the_broker_of_the_tests_has_the_properties_of_every_broker(broker: FoundBroker) -> None:
    if not broker.about.startswith("Apache Kafka"):
        pytest.skip(f"checks a broker that the tests start; have {broker.about}")
    expected = kafka.common_properties()
    listed = described(broker.bootstrap)
    assert {name: listed[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("auto.create.topics.enable", "KAFKA_AUTO_CREATE_TOPICS_ENABLE"),
        ("listener.name.client.scram-sha-512.sasl", "KAFKA_LISTENER_NAME_CLIENT_SCRAM___SHA___512_SASL"),
        ("with_underscore.and-hyphen", "KAFKA_WITH__UNDERSCORE_AND___HYPHEN"),
    ],
)
def test_a_property_becomes_the_variable_that_the_image_reads(name: str, variable: str) -> None:
    assert variable_of(name) == variable


def test_every_common_property_reaches_the_container(tmp_path: Path) -> None:
    for nodes in (1, 3):
        cluster = ContainerCluster(tmp_path, nodes=nodes, properties={"log.retention.ms": "1"})
        expected = {**kafka.common_properties(nodes), "log.retention.ms": "1"}
        for node in cluster.nodes:
            assert expected.items() <= cluster._configuration(node).items()


def test_the_image_is_that_of_the_version(docker: None) -> None:
    way = find_way()
    assert way.cluster is ContainerCluster
    assert way.about == f"Apache Kafka {brokers.VERSION} in Docker (apache/kafka:{brokers.VERSION})"


@pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven")
@pytest.mark.real_broker
def test_without_the_image_the_broker_comes_from_maven_and_its_description_gives_the_reason(
    no_image: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NEARDUP_BROKER", raising=False)
    with find_broker(tmp_path) as found:
        reason = f"Docker is present, but the image {NO_IMAGE} could not be pulled"
        assert found == FoundBroker(found.bootstrap, f"Apache Kafka {brokers.VERSION} from Maven ({reason})", real=True)
        assert described(found.bootstrap)["group.min.session.timeout.ms"] == "500"


def test_without_docker_and_maven_only_the_mock_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NEARDUP_BROKER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(brokers, "REQUIRE_REAL", False)
    with find_broker(tmp_path) as found:
        assert not found.real
    with pytest.raises(pytest.skip.Exception, match="needs a broker of its own"):
        own_cluster(tmp_path)
    monkeypatch.setattr(brokers, "REQUIRE_REAL", True)
    reason = "no Docker engine responds, and Java or Maven is missing"
    with pytest.raises(RuntimeError, match=reason), find_broker(tmp_path):
        pass
    with pytest.raises(pytest.fail.Exception, match=reason):
        own_cluster(tmp_path)


@pytest.mark.real_broker
def test_a_killed_test_process_leaves_no_container_behind(docker: None, tmp_path: Path) -> None:
    path = [str(ROOT), str(ROOT / "deploy" / "kafka")]
    program = f"import sys; sys.path[:0] = {path!r}{START_AND_WAIT}"
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process.stdout:
        label = process.stdout.readline().strip()
    process.kill()
    process.wait()
    chosen = {"label": f"{LABEL}={label}"}
    engine = DockerClient().client
    try:
        deadline = time.monotonic() + 30
        while left := [*engine.containers.list(all=True, filters=chosen), *engine.networks.list(filters=chosen)]:
            assert time.monotonic() < deadline, left
            time.sleep(0.2)
    finally:
        engine.close()

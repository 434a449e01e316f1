"""Apache Kafka in Docker containers, with the interface and the properties of deploy/kafka/broker.py."""

import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import requests
from docker.errors import DockerException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network

from deploy.kafka import broker as kafka
from tests.support import container_remover
from tests.support.container_remover import ENGINE_SECONDS, LABEL

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
"""The cluster ID of every cluster. Each cluster has its own network, so nodes of different clusters never connect."""
CLIENT_PORT, BROKER_PORT, CONTROLLER_PORT = 19092, 19091, 9093
STARTED = "Kafka Server started"
DATA = "/var/lib/kafka/data"
FORMAT_PROPERTIES = "/tmp/format.properties"
STOP_SECONDS = 30.0
# Ryuk needs a second image and a container that controls the engine. container_remover.py needs neither.
testcontainers_config.ryuk_disabled = True


def image_of(version: str) -> str:
    """Return the image that docker-compose.yml uses, for a version of Kafka."""
    return f"apache/kafka:{version}"


def obstacle(version: str) -> str | None:
    """Return the reason why clusters of a version cannot run in containers, or None. Pull the image if necessary."""
    if not _engine_answers():
        return "no Docker engine responds"
    image = image_of(version)
    try:
        engine = DockerClient(timeout=ENGINE_SECONDS).client
        try:
            if not engine.images.list(image):
                engine.images.pull(image)
        finally:
            engine.close()
    except (DockerException, requests.RequestException):
        return f"Docker is present, but the image {image} could not be pulled"
    return None


def _engine_answers() -> bool:
    # The client library is not used, because it leaves a socket open if no engine is running.
    try:
        return subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def variable_of(name: str) -> str:
    """Return the environment variable with which the image sets a broker property."""
    return "KAFKA_" + name.replace("_", "__").replace("-", "___").replace(".", "_").upper()


class ContainerCluster(kafka.Cluster):
    """Brokers of one version, each in a container that keeps its data until the context ends.

    Clients on this machine reach each node through a port that is published on the loopback interface. A property whose
    value is the path of a file on this machine refers to a copy of that file in the container.
    """

    _containers: dict[int, DockerContainer]
    _starts_logged: dict[int, int]

    def __enter__(self) -> "ContainerCluster":
        self._containers, self._starts_logged = {}, {}
        self._label = uuid.uuid4().hex
        self._remover = subprocess.Popen(
            [sys.executable, container_remover.__file__, self._label],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must not reach this process: it has to outlive the tests
        )
        try:
            self._network = Network(docker_network_kw={"labels": {LABEL: self._label}}).create()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the containers with their data, and the network."""
        try:
            for node in self.nodes:
                if container := self._containers.get(node.id):
                    node.directory.mkdir(parents=True, exist_ok=True)
                    node.log.write_text(self.logged(node))
                    container.get_docker_client().client.close()
        finally:
            self._remover.communicate()
        if self._remover.returncode:
            raise kafka.BrokerError(f"the containers with the label {LABEL}={self._label} could not be removed")

    def stop(self, node: kafka.Node | None = None) -> None:
        """Shut the node down cleanly and wait. Kill it if it does not end in time."""
        running = [each for each in self._chosen(node) if self._runs(each)]
        for each in running:
            self._containers[each.id].get_wrapped_container().kill("SIGTERM")
        for each in running:
            try:
                self._containers[each.id].get_wrapped_container().wait(timeout=STOP_SECONDS)
            except requests.RequestException:
                self.kill(each)

    def kill(self, node: kafka.Node | None = None) -> None:
        """Send SIGKILL."""
        for each in self._chosen(node):
            if self._runs(each):
                container = self._containers[each.id].get_wrapped_container()
                container.kill("SIGKILL")
                container.wait()

    def logged(self, node: kafka.Node) -> str:
        """Return what a node has written to its log."""
        return bytes(self._containers[node.id].get_wrapped_container().logs()).decode(errors="replace")

    def _runs(self, node: kafka.Node) -> bool:
        container = self._containers[node.id].get_wrapped_container()
        container.reload()
        return bool(container.status == "running")

    def _format(self, node: kafka.Node) -> None:
        """Do nothing: each container formats its own storage."""

    def _launch(self, node: kafka.Node) -> None:
        if container := self._containers.get(node.id):
            self._starts_logged[node.id] = self.logged(node).count(STARTED)
            container.get_wrapped_container().start()
        else:
            self._starts_logged[node.id] = 0
            self._containers[node.id] = self._container(node).start()

    def _container(self, node: kafka.Node) -> DockerContainer:
        configuration = self._configuration(node)
        made = (
            DockerContainer(image_of(self.version), docker_client_kw={"timeout": ENGINE_SECONDS})
            .with_network(self._network)
            .with_network_aliases(_host(node))
            .with_envs(**{variable_of(name): value for name, value in configuration.items()})
            .with_envs(
                CLUSTER_ID=CLUSTER_ID,
                KAFKA_HEAP_OPTS=f"-Xms{kafka.HEAP} -Xmx{kafka.HEAP}",
                KAFKA_JVM_PERFORMANCE_OPTS=" ".join(kafka.FRUGAL),
            )
            .with_kwargs(labels={LABEL: self._label})
        )
        made.ports[f"{CLIENT_PORT}/tcp"] = ("127.0.0.1", node.port)  # type: ignore[assignment]
        for value in configuration.values():
            if value.startswith("/") and Path(value).is_file():
                made.with_copy_into_container(Path(value), value)
        if self.scram_users:
            # The image formats new storage without users, and accepts storage that is already formatted.
            lines = "".join(f"{name}={value}\n" for name, value in configuration.items())
            made.with_copy_into_container(lines.encode(), FORMAT_PROPERTIES)
            format_store = ["/opt/kafka/bin/kafka-storage.sh", "format", "--ignore-formatted", "-t", CLUSTER_ID]
            format_store += ["-c", FORMAT_PROPERTIES, *self._scram_arguments()]
            made.with_command(["bash", "-c", '"$@" && exec /etc/kafka/docker/run', "bash", *format_store])
        return made

    def _configuration(self, node: kafka.Node) -> dict[str, str]:
        addresses = {
            "controller.quorum.voters": ",".join(f"{each.id}@{_host(each)}:{CONTROLLER_PORT}" for each in self.nodes),
            "listeners": f"CLIENT://:{CLIENT_PORT},BROKER://:{BROKER_PORT},CONTROLLER://:{CONTROLLER_PORT}",
            "advertised.listeners": f"CLIENT://{node.address},BROKER://{_host(node)}:{BROKER_PORT}",
            "listener.security.protocol.map": f"CLIENT:{self.protocol},BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
            "log.dirs": DATA,
        }
        return {**super()._configuration(node), **addresses}

    def _await_ready(self, node: kafka.Node) -> None:
        # The engine accepts connections to a published port before the broker does, so only the log shows the start.
        deadline = time.monotonic() + kafka.START_SECONDS
        while self.logged(node).count(STARTED) <= self._starts_logged[node.id]:
            if not self._runs(node):
                raise kafka.BrokerError(f"node {node.id} ended:\n{self._tail(node)}")
            if time.monotonic() > deadline:
                raise kafka.BrokerError(
                    f"node {node.id} did not start within {kafka.START_SECONDS:g} s:\n{self._tail(node)}"
                )
            time.sleep(0.1)
        try:
            socket.create_connection(("127.0.0.1", node.port), 5).close()
        except OSError as error:
            raise kafka.BrokerError(
                f"node {node.id} runs in Docker, but {node.address} does not reach it ({error}): "
                "expected an engine that publishes ports on this machine; "
                "set NEARDUP_BROKER to a broker that can be reached"
            ) from error

    def _tail(self, node: kafka.Node) -> str:
        return "".join(self.logged(node).splitlines(keepends=True)[-30:])


def _host(node: kafka.Node) -> str:
    return f"node-{node.id}"

"""Apache Kafka without Docker: runs the jars from Maven Central with the Java installation of this machine.

    python -m deploy.kafka.broker run --data DIR [--port 9092] [--version 4.3.1] [--nodes 1]
    python -m deploy.kafka.broker fetch [--version 4.3.1]

`run` stays in the foreground until Ctrl-C or SIGTERM. As a library, `Cluster` starts, stops, kills and restarts the
nodes one by one, on the same data. The module needs only the standard library and can also be run by its path. The jars
are cached under $XDG_CACHE_HOME/neardup (default ~/.cache/neardup).
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

NEWEST = "4.3.1"
SUPPORTED = ("3.9.2", NEWEST)
HEAP = "512m"
FRUGAL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options for a broker that runs for minutes and shares the processor with its clients: in that time the optimizing
compiler and a parallel garbage collector cost more than they gain."""
START_SECONDS = 60.0


class BrokerError(Exception):
    """The broker cannot be fetched or does not start; the message explains why."""


def available() -> bool:
    """Return whether this machine can run a broker from Maven."""
    return shutil.which("java") is not None and shutil.which("mvn") is not None


def jars(version: str = NEWEST) -> Path:
    """Return the directory with the jars of a version, which are fetched on first use."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neardup" / f"kafka-{version}"
    if cache.is_dir():
        return cache
    if not available():
        raise BrokerError("expected java and mvn on the PATH; install a JDK (17 or newer) and Maven")
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as work:
        # Maven writes target/ next to the pom, so the pom is copied to the scratch directory.
        pom = shutil.copy(Path(__file__).with_name("pom.xml"), work)
        target = Path(work) / "jars"
        command = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={target}", f"-Dkafka.version={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not any(target.glob("kafka_2.13-*.jar")):
            raise BrokerError(f"Maven could not fetch Kafka {version}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        # Another process may have been faster; its result is the same.
        with contextlib.suppress(OSError):
            target.rename(cache)
    return cache


def free_port() -> int:
    """Return a port on which nothing listens now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def common_properties(nodes: int = 1) -> dict[str, str]:
    """Return the properties of every broker in a cluster of `nodes`, in containers as well as from Maven.

    Properties that depend on the addresses and folders of a node are not included.
    """
    copies = str(min(3, nodes))
    return {
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": "1",
        "offsets.topic.num.partitions": "8",
        # A killed broker can rejoin only when its old session has ended.
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "1000",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "500",
        "message.max.bytes": str(32 * 2**20),
        "replica.fetch.max.bytes": str(32 * 2**20),
    }


@dataclass
class Node:
    """A node that is both broker and controller."""

    id: int
    port: int
    controller_port: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"


class Cluster:
    """A cluster of brokers of one version on one data directory. Each broker is a process.

    The constructor starts nothing; `with` starts and stops the cluster. Every method acts on all nodes unless a
    node is given. Clients connect with `protocol` as one of `scram_users`, which maps names to passwords. `properties`
    are added to the properties of every node.
    """

    def __init__(
        self,
        data: Path,
        *,
        version: str = NEWEST,
        nodes: int = 1,
        port: int | None = None,
        properties: dict[str, str] | None = None,
        protocol: str = "PLAINTEXT",
        scram_users: dict[str, str] | None = None,
    ) -> None:
        self.version = version
        self.data = data.resolve()
        self.properties = properties or {}
        self.protocol = protocol
        self.scram_users = scram_users or {}
        self.nodes = [
            Node(
                id=number + 1,
                port=port + number if port else free_port(),
                controller_port=free_port(),
                directory=self.data / f"node-{number + 1}",
            )
            for number in range(nodes)
        ]

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, comma-separated."""
        return ",".join(node.address for node in self.nodes)

    def __enter__(self) -> "Cluster":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, node: Node | None = None) -> None:
        """Format new nodes, start, and return when every node accepts connections."""
        chosen = self._chosen(node)
        for each in chosen:
            self._format(each)
        for each in chosen:
            self._launch(each)
        for each in chosen:
            self._await_ready(each)

    def stop(self, node: Node | None = None) -> None:
        """Stop with SIGTERM and wait; kill a node that does not stop within 30 seconds."""
        chosen = [each for each in self._chosen(node) if each.process]
        for each in chosen:
            assert each.process
            each.process.terminate()
        for each in chosen:
            assert each.process
            try:
                each.process.wait(30)
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait()
            each.process = None

    def kill(self, node: Node | None = None) -> None:
        """Kill with SIGKILL."""
        for each in self._chosen(node):
            if each.process:
                each.process.kill()
                each.process.wait()
                each.process = None

    def restart(self, node: Node | None = None) -> None:
        """Stop if running, then start on the same data and ports."""
        self.stop(node)
        self.start(node)

    def logged(self, node: Node) -> str:
        """Return what a node has written to its log."""
        return node.log.read_text(errors="replace")

    def _chosen(self, node: Node | None) -> list[Node]:
        return self.nodes if node is None else [node]

    def _java(self) -> list[str]:
        logger = "-Dorg.slf4j.simpleLogger"
        # This class reports clients whose authentication failed, at the level info.
        levels = [f"{logger}.defaultLogLevel=warn", f"{logger}.log.org.apache.kafka.common.network.Selector=info"]
        return ["java", f"-Xmx{HEAP}", f"-Xms{HEAP}", *FRUGAL, *levels, "-cp", f"{jars(self.version)}/*"]

    def _format(self, node: Node) -> None:
        node.directory.mkdir(parents=True, exist_ok=True)
        properties = node.directory / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self._configuration(node).items()))
        if (node.directory / "data" / "meta.properties").exists():
            return
        identity = self.data / "cluster-id"
        if not identity.exists():
            identity.write_text(self._storage_tool("random-uuid").strip().splitlines()[-1])
        self._storage_tool("format", "-t", identity.read_text(), "-c", str(properties), *self._scram_arguments())

    def _scram_arguments(self) -> list[str]:
        users = [f"SCRAM-SHA-512=[name={name},password={password}]" for name, password in self.scram_users.items()]
        return [argument for user in users for argument in ("--add-scram", user)]

    def _launch(self, node: Node) -> None:
        with node.log.open("ab") as log:
            node.process = subprocess.Popen(
                [*self._java(), "kafka.Kafka", str(node.directory / "server.properties")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,  # Ctrl-C must not reach the broker, which this process stops itself
            )  # fmt: skip

    def _storage_tool(self, *arguments: str) -> str:
        command = [*self._java(), "kafka.tools.StorageTool", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerError(f"the storage tool of Kafka failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _configuration(self, node: Node) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": str(node.id),
            "controller.quorum.voters": ",".join(f"{n.id}@127.0.0.1:{n.controller_port}" for n in self.nodes),
            "listeners": f"CLIENT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
            "advertised.listeners": f"CLIENT://127.0.0.1:{node.port}",
            "listener.security.protocol.map": f"CLIENT:{self.protocol},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "CLIENT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(node.directory / "data"),
            **common_properties(len(self.nodes)),
            **self.properties,
        }

    def _await_ready(self, node: Node) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert node.process
            if node.process.poll() is not None:
                raise BrokerError(f"node {node.id} ended with exit code {node.process.returncode}:\n{_tail(node.log)}")
            with contextlib.suppress(OSError), socket.create_connection((node.address.split(":")[0], node.port), 1):
                return
            time.sleep(0.1)
        raise BrokerError(f"node {node.id} did not accept connections within {START_SECONDS:g} s:\n{_tail(node.log)}")


def _tail(path: Path) -> str:
    return "".join(path.read_text(errors="replace").splitlines(keepends=True)[-30:])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("run", "run in the foreground"), ("fetch", "only fetch the jars")):
        command = commands.add_parser(name, help=about)
        command.add_argument(
            "--version", default=NEWEST, help=f"version of Kafka; tested: {', '.join(SUPPORTED)}; default %(default)s"
        )
        if name == "run":
            command.add_argument("--data", type=Path, required=True, help="directory for the data")
            command.add_argument("--port", type=int, default=9092, help="port of the first node; default %(default)s")
            command.add_argument("--nodes", type=int, default=1, help="number of nodes; default %(default)s")
    options = parser.parse_args()
    try:
        if options.command == "fetch":
            print(jars(options.version))
            return
        stopped = threading.Event()
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda *_: stopped.set())
        with Cluster(options.data, version=options.version, nodes=options.nodes, port=options.port) as cluster:
            print(f"Kafka {options.version} is ready at {cluster.bootstrap}", flush=True)
            while not stopped.wait(0.5):
                ended = [node for node in cluster.nodes if node.process and node.process.poll() is not None]
                if ended:
                    raise BrokerError(f"node {ended[0].id} ended:\n{_tail(ended[0].log)}")
    except BrokerError as error:
        sys.exit(f"broker: {error}")


if __name__ == "__main__":
    main()

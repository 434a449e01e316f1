import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings

from neardup.log import Log
from neardup.log.kafka import KafkaLog
from neardup.log.memory import MemoryLog
from neardup.settings import Settings
from tests.services.workers import Deployment
from tests.support.brokers import FoundBroker, find_broker

hypothesis_settings.register_profile("default", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis_settings.load_profile("default")


_brokers: set[str] = set()
"""Brokers that the tests used, collected from all processes of a parallel run."""


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[FoundBroker]:
    """Provide one broker for all tests of this process. The end of the run reports which one it was."""
    with find_broker(tmp_path_factory.mktemp("kafka")) as found:
        _brokers.add(found.about)
        getattr(request.config, "workeroutput", {})["broker"] = found.about
        yield found


class Brokers:
    """Collects the reports of the processes of a parallel run."""

    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if about := getattr(node, "workeroutput", {}).get("broker"):
            _brokers.add(about)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for about in sorted(_brokers):
            terminalreporter.write_line(f"broker: {about}")
        for report in terminalreporter.getreports("passed"):
            for name, value in report.user_properties:
                if name == "measured" and report.when == "call":
                    terminalreporter.write_line(f"measured: {value}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin. Its hook `pytest_testnodedown` exists only under pytest-xdist."""
    config.pluginmanager.register(Brokers())


@pytest.fixture
def kafka_settings(broker: FoundBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    """Return settings for a separate deployment on the shared broker, with a new prefix and a new state directory.

    Tests marked `real_broker` are skipped on the mock cluster, which does not support them.
    """
    if not broker.real and request.node.get_closest_marker("real_broker"):
        pytest.skip(f"needs Apache Kafka for topics, several members or restarts; have {broker.about}")
    return Settings(
        broker=broker.bootstrap,
        prefix=f"t{uuid.uuid4().hex[:8]}",
        state=tmp_path / "state",
        session_timeout_seconds=2 if broker.real else 10,  # the mock hangs below its own initial delay of 3 s
        checkpoint_seconds=0.2,
        page_partitions=2,
        owners=2,
        verdict_partitions=1,
    )


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
async def log(request: pytest.FixtureRequest) -> AsyncIterator[Log]:
    """Provide every kind of log, started."""
    made: Log = MemoryLog() if request.param == "memory" else KafkaLog(request.getfixturevalue("kafka_settings"))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture(scope="session")
def compiled_kernels() -> None:
    """Compile the kernels once, so that no worker does it while a test waits for the worker."""
    subprocess.run([sys.executable, "-m", "neardup_services.cli", "warm-up"], check=True, capture_output=True)


@pytest.fixture
def deployment(kafka_settings: Settings, tmp_path: Path, compiled_kernels: None) -> Iterator[Deployment]:
    """Run services as processes, and kill those that still run at the end."""
    made = Deployment(kafka_settings, tmp_path)
    yield made
    for worker in made.workers:
        if worker.process.poll() is None:
            worker.process.kill()
        worker.process.wait()

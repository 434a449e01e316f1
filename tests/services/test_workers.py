"""The services as an operator runs them: real processes on a real broker."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import broker as kafka
from neardup.log import Output
from neardup.log.kafka import KafkaLog
from neardup.page import write_page
from neardup.settings import Settings
from neardup.topics import Topics
from neardup.types import Kind, Page, Verdict
from neardup.verdict import read_verdict
from tests.log.test_contract import Recorder, join

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker]
BIN = Path(sys.executable).parent


class Worker:
    """A process started like an operator would."""

    def __init__(self, settings: Settings, directory: Path, number: int, *command: str) -> None:
        self.port = kafka.free_port()
        self.log = directory / f"worker-{number}.log"
        environment = os.environ | environment_of(settings)
        environment |= {"NEARDUP_WEB_PORT": str(self.port), "NEARDUP_STATE": str(directory / f"state-{number}")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=directory)

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def await_ready(self, seconds: float = 40) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            try:
                status, body = self.get("/readyz")
                if status == 200:
                    return dict(json.loads(body))
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError(f"not ready after {seconds} s:\n{self.log.read_text()}")

    def terminate(self) -> int:
        self.process.terminate()
        return self.process.wait(20)


class Deployment:
    def __init__(self, settings: Settings, directory: Path) -> None:
        self.settings = settings
        self.directory = directory
        self.workers: list[Worker] = []

    def start(self, *command: str) -> Worker:
        name, *arguments = command
        worker = Worker(self.settings, self.directory, len(self.workers), str(BIN / name), *arguments)
        self.workers.append(worker)
        return worker

    def neardup(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = os.environ | environment_of(self.settings)
        command = [str(BIN / "neardup"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def deployment(kafka_settings: Settings, tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(kafka_settings, tmp_path)
    yield made
    for worker in made.workers:
        if worker.process.poll() is None:
            worker.process.kill()
        worker.process.wait()


def environment_of(settings: Settings) -> dict[str, str]:
    return {variable: value for variable, value, _ in settings.describe()}


def test_topics_are_created_idempotently_and_differences_told(deployment: Deployment) -> None:
    first = deployment.neardup("topics", "create")
    assert (first.returncode, first.stdout.count(": created")) == (0, 4), first
    second = deployment.neardup("topics", "create")
    assert (second.returncode, second.stdout.count(": exists")) == (0, 4), second
    deployment.settings = Settings(
        broker=deployment.settings.broker, prefix=deployment.settings.prefix, owners=3, page_retention_hours=7
    )
    third = deployment.neardup("topics", "create")
    assert third.returncode == 1
    assert "inbox: differs: 2 partitions, expected 3" in third.stdout
    assert "retention.ms = 604800000, expected 25200000" in third.stdout


def test_a_worker_serves_its_endpoints_and_ends_cleanly_on_sigterm(deployment: Deployment) -> None:
    deployment.neardup("topics", "create")
    worker = deployment.start("neardup", "worker", "featurizer")
    ready = worker.await_ready()
    prefix = deployment.settings.prefix
    assert ready["partitions"] == [f"{prefix}.pages-0", f"{prefix}.pages-1"]
    assert worker.get("/healthz") == (200, '{"status":"alive"}')
    status, metrics = worker.get("/metrics")
    assert status == 200
    assert 'neardup_assigned_partitions{stage="featurizer"} 2.0' in metrics
    assert "faust_" in metrics
    before = time.monotonic()
    assert worker.terminate() == 0, worker.log.read_text()
    assert time.monotonic() - before < 10


def test_the_faust_command_starts_the_same_worker(deployment: Deployment) -> None:
    deployment.neardup("topics", "create")
    worker = deployment.start("faust", "-A", "neardup_services.apps.aggregator", "worker")
    assert len(worker.await_ready()["partitions"]) == 2
    assert worker.terminate() == 0, worker.log.read_text()


def test_missing_topics_are_one_clear_line_and_exit_code_1(deployment: Deployment) -> None:
    worker = deployment.start("neardup", "worker", "featurizer")
    assert worker.process.wait(30) == 1
    text = worker.log.read_text()
    assert "does not exist; create it with: neardup topics create" in text
    assert "Traceback" not in text


def test_logs_are_json_by_setting(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment.settings = Settings(broker=deployment.settings.broker, prefix="nowhere", log_format="json")
    worker = deployment.start("neardup", "worker", "featurizer")
    worker.process.wait(30)
    lines = [json.loads(line) for line in worker.log.read_text().splitlines()]
    assert any(line["level"] == "error" and "nowhere.pages does not exist" in line["message"] for line in lines)


async def test_a_killed_workers_partitions_are_taken_over_and_nothing_is_lost(deployment: Deployment) -> None:
    """Two of each service; one of each is killed -9 in mid-stream. Every page still gets its right verdict."""
    assert deployment.neardup("topics", "create").returncode == 0
    workers = [
        deployment.start("neardup", "worker", name) for name in ("featurizer", "featurizer", "aggregator", "aggregator")
    ]
    for worker in workers:
        await asyncio.to_thread(worker.await_ready)
    topics = Topics.under(deployment.settings.prefix)
    log = KafkaLog(deployment.settings)
    await log.start()
    total = 6000
    for start in range(0, total, 50):
        pages = [
            Page(f"https://h.example/{n}", html=b"<p>content %d</p>" % (n % 2500)) for n in range(start, start + 50)
        ]
        await log.send([Output(topics.pages, n % 2, None, write_page(page)) for n, page in enumerate(pages)])
        if start == 2000:
            workers[0].process.send_signal(signal.SIGKILL)
        if start == 4000:
            workers[2].process.send_signal(signal.SIGKILL)
        await asyncio.sleep(0.01)

    consumer, recorder = await join(log, topics.verdicts, "check", Recorder())
    last: dict[str, Verdict] = {}
    async with asyncio.timeout(60):
        while len(last) < total:
            for records in (await consumer.poll(recorder.mine, timeout=0.2, max_records=5000)).values():
                for record in records:
                    verdict = read_verdict(record.value or b"")
                    if verdict.document not in last or last[verdict.document].revision <= verdict.revision:
                        last[verdict.document] = verdict
    await consumer.close()
    await log.stop()
    assert len({verdict.url for verdict in last.values()}) == total
    # Which of two pages of the same millisecond is first depends on the partition; that there is one does not.
    assert sum(verdict.verdict is Kind.UNIQUE for verdict in last.values()) == 2500
    for survivor in (workers[1], workers[3]):
        assert len(json.loads(survivor.get("/readyz")[1])["partitions"]) == 2
        assert survivor.terminate() == 0, survivor.log.read_text()

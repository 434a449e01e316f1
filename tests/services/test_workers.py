"""Tests of the services as real processes on a real broker."""

import json
import time

import pytest

from neardup.settings import Settings
from tests.services.workers import Deployment

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker]


def test_topics_are_created_idempotently_and_differences_are_reported(deployment: Deployment) -> None:
    first = deployment.neardup("topics", "create")
    assert (first.returncode, first.stdout.count(": created")) == (0, 8), first
    second = deployment.neardup("topics", "create")
    assert (second.returncode, second.stdout.count(": exists")) == (0, 8), second
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
    log = worker.log.read_text()
    assert "INFO    neardup.runtime.runner: assigned" in log
    assert "[^" not in log, "log lines of Faust's services"


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


def test_logs_are_json_if_configured(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment.settings = Settings(broker=deployment.settings.broker, prefix="nowhere", log_format="json")
    worker = deployment.start("neardup", "worker", "featurizer")
    worker.process.wait(30)
    lines = [json.loads(line) for line in worker.log.read_text().splitlines()]
    assert any(line["level"] == "error" and "nowhere.pages does not exist" in line["message"] for line in lines)

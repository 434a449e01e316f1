"""Tests of `neardup status` for a real broker, a state directory, and a worker, as text and as JSON."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from neardup.embedded.deduplicator import Deduplicator
from neardup.log.cluster import GroupView, TopicView
from neardup.log.contract import Partition
from neardup.settings import Settings
from neardup.types import Page
from neardup_services.cli import main
from neardup_services.status.worker import query_workers
from tests.services.workers import Deployment
from tests.support.documents import text_of

SETTINGS = Settings(tables=4, bands="3x4", processes=1)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return the state of a run over three pages, two of them equal."""
    with Deduplicator(tmp_path / "state", SETTINGS) as known:
        known.add_all([Page(f"http://a/{n}", text=" ".join(text_of(n // 2))) for n in range(3)])
    return tmp_path / "state"


def status(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["status", *map(str, arguments)])


def test_a_state_directory_as_text(state: Path) -> None:
    done = status("--state", state)
    assert done.exit_code == 0, done.output
    assert "3 pages in 1 run, saved" in done.output
    assert "neardup.probes-0" in done.output
    assert "no offline pass yet" in done.output


def test_a_state_directory_as_json(state: Path) -> None:
    found = json.loads(status("--state", state, "--json").output)
    assert (found["pages"], found["clean"], found["runs"]) == (3, True, 1)
    assert [each["keys"] for each in found["slices"][:4]] == [2] * 4
    # Two documents with three bands each, in two slices.
    assert sum(each["keys"] for each in found["slices"][4:]) == 2 * 3
    assert len(found["slices"]) == 4 + 2
    assert [each["documents"] for each in found["owners"]] == [3]
    assert (found["corpus_files"], found["corpus_documents"]) == (1, 3)
    assert len(found["plans"]) == len(found["signature_versions"]) == 1
    assert found["last_pass"] is None


def test_a_configured_corpus_is_counted(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers on Kafka use the configured corpus. An embedded run has its own, regardless of the settings."""
    monkeypatch.setenv("NEARDUP_CORPUS", str(state.parent / "elsewhere"))
    assert json.loads(status("--state", state, "--json").output)["corpus_documents"] == 3
    (state / "corpus").rename(state.parent / "elsewhere")
    (state / "embedded.json").unlink()
    found = json.loads(status("--state", state, "--json").output)
    assert (found["corpus"], found["corpus_documents"]) == (str(state.parent / "elsewhere"), 3)
    done = status("--state", state)
    assert done.exit_code == 0, done.output
    assert str(state.parent / "elsewhere") in done.output


def test_a_state_directory_can_be_read_while_it_is_in_use(tmp_path: Path) -> None:
    with Deduplicator(tmp_path, SETTINGS) as known:
        known.add(Page("http://a/", text=" ".join(text_of(1))))
        found = json.loads(status("--state", tmp_path, "--json").output)
        assert found["clean"] is False
        assert "interrupted: the next run resumes" in status("--state", tmp_path).output


def test_the_last_offline_pass_is_shown(state: Path) -> None:
    (state / "clusters").mkdir()
    (state / "clusters/report.json").write_text('{"documents": 3, "clusters": 2, "seconds": 0.5}')
    assert "3 documents, 2 clusters, 0.5 s" in status("--state", state).output


@pytest.mark.parametrize("text", ["", "[]", '{"documents": 3, "clusters": 2}', '{"documents": null}'])
def test_a_damaged_report_of_the_offline_pass_is_one_clear_line(state: Path, text: str) -> None:
    (state / "clusters").mkdir()
    (state / "clusters/report.json").write_text(text)
    done = status("--state", state)
    assert done.exit_code == 1
    assert "report.json: expected" in done.output


def test_a_directory_without_state_is_one_clear_line(tmp_path: Path) -> None:
    done = status("--state", tmp_path)
    assert done.exit_code == 1
    assert "expected a state directory" in done.output


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_a_damaged_file_of_an_embedded_run_is_one_clear_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "embedded.json").write_text(text)
    done = status("--state", tmp_path)
    assert done.exit_code == 1
    assert "expected" in done.output
    assert "embedded.json" in done.output


# A group's lag


def test_lag_is_counted_from_the_committed_offset_or_else_from_the_oldest_record() -> None:
    topic = TopicView("t", {Partition("t", 0): (10, 30), Partition("t", 1): (0, 5), Partition("t", 2): (8, 8)})
    group = GroupView("g", "Stable", committed={Partition("t", 0): 25, Partition("t", 2): 3})
    assert list(group.lag(topic).values()) == [5, 5, 0]
    assert topic.records == 25


# A worker


METRICS = """
neardup_assigned_partitions{{stage="shard"}} 2.0
neardup_records_total{{stage="shard",partition="0"}} {records}
neardup_records_total{{stage="shard",partition="1"}} 7.0
neardup_lag_records{{stage="shard",partition="0"}} 3.0
neardup_slice_keys{{partition="0",table="simhash"}} 1000.0
neardup_slice_bytes{{partition="0"}} 2048.0
process_resident_memory_bytes 1048576.0
"""


class FakeWorker(BaseHTTPRequestHandler):
    """A worker whose counter of records increases by twenty with each request."""

    asked = 0

    def do_GET(self) -> None:
        if self.path == "/metrics":
            type(self).asked += 1
            self.answer(200, METRICS.format(records=20 * self.asked))
        else:
            self.answer(503, json.dumps({"ready": False, "reason": "rebalancing", "partitions": ["t-0", "t-1"]}))

    def answer(self, code: int, body: str) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), FakeWorker) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_worker_is_shown_with_rate_memory_and_the_reason_why_it_is_not_ready(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup_services.status.worker.APART_SECONDS", 0.1)
    (found,) = query_workers([address + "/"])
    assert (found.stage, found.ready, found.reason, found.partitions) == ("shard", False, "rebalancing", 2)
    assert found.records_per_second == 200
    assert (found.lag, found.slice_keys, found.slice_bytes, found.memory_bytes) == (3, 1000, 2048, 2**20)
    assert found.checkpoint_age_seconds is None


def test_a_worker_that_does_not_respond_is_shown_as_unreachable() -> None:
    (found,) = query_workers(["http://127.0.0.1:1"])
    assert not found.ready
    assert "no answer" in str(found.reason)


# A deployment


def test_a_missing_broker_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_BROKER", "127.0.0.1:1")
    done = status()
    assert done.exit_code == 1
    assert "cannot use the broker at 127.0.0.1:1" in done.output


@pytest.mark.kafka
@pytest.mark.real_broker
def test_a_deployment_is_shown_with_missing_topics_and_running_workers(deployment: Deployment) -> None:
    deployment.settings = replace(deployment.settings, instance="f-0", tables=4, bands="none")
    nothing = deployment.neardup("status", "--json")
    assert nothing.returncode == 1, nothing
    assert {each["state"] for each in json.loads(nothing.stdout)["topics"]} == {"missing"}
    deployment.neardup("topics", "create")
    worker = deployment.start("neardup", "worker", "featurizer")
    worker.await_ready(120)
    done = deployment.neardup("status", "--json", "--worker", f"http://127.0.0.1:{worker.port}")
    found = json.loads(done.stdout)
    assert {each["state"] for each in found["topics"]} == {"exists"}
    services = {each["service"]: each for each in found["services"]}
    (member,) = services["featurizer"]["members"]
    assert (member["instance"], member["partitions"]) == ("f-0", 2)
    assert services["shard"]["members"] == []
    assert services["featurizer"]["lag_by_partition"] == {"0": 0, "1": 0}
    assert [(each["stage"], each["ready"]) for each in found["workers"]] == [("featurizer", True)]
    assert done.returncode == 1  # three services have no worker
    assert "f-0" in deployment.neardup("status").stdout

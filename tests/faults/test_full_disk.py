"""Tests with real disks that are full or read-only: a worker reports it in one line, stops, and resumes when it can.

Each worker gets a file system of its own by `unshare`, which needs no privileges where user namespaces are allowed.
"""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from neardup.sample import sample_crawl
from tests.services.test_stream import check, last_verdicts, send
from tests.services.workers import BIN, Deployment, Worker

ROUNDS = int(os.environ.get("NEARDUP_TEST_FAULT_ROUNDS", "1"))

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.real_broker,
    pytest.mark.faults,
    pytest.mark.skipif(ROUNDS == 1, reason="takes long: only in `make faults`"),
    pytest.mark.skipif(
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True).returncode != 0,
        reason="needs unshare and user namespaces, to mount small disks",
    ),
]

PAGES = 1500
SMALL = "size=300k"
"""Disk size: more than the state of an empty shard or owner, and less than its state after these pages."""


async def test_a_full_disk_stops_a_worker_and_loses_nothing(deployment: Deployment, tmp_path: Path) -> None:
    settings = deployment.settings
    assert deployment.neardup("topics", "create").returncode == 0
    featurizer = deployment.start("neardup", "worker", "featurizer")
    full = {name: on_a_disk(deployment, name, SMALL) for name in ("shard", "aggregator")}
    pages = [made.page for made in sample_crawl(PAGES, seed=8, mean_bytes=8000)]
    await asyncio.to_thread(featurizer.await_ready)
    await send(settings, pages)
    for name, worker in full.items():
        if name == "aggregator":
            # Without answers an owner stores little.
            deployment.start("neardup", "worker", "shard")
        assert await ended(worker, 40) == 1, worker.log.read_text()
        assert_logged(worker, "No space left on device", "free some space")
    deployment.start("neardup", "worker", "aggregator")
    check(settings, await last_verdicts(settings, PAGES), pages, tmp_path / "embedded")


async def test_a_read_only_disk_stops_a_worker(deployment: Deployment) -> None:
    assert deployment.neardup("topics", "create").returncode == 0
    workers = [on_a_disk(deployment, name, "ro") for name in ("shard", "aggregator", "recluster")]
    for worker in workers:
        assert await ended(worker, 40) == 1, worker.log.read_text()
        assert_logged(worker, "Read-only file system", "make it writable")


def on_a_disk(deployment: Deployment, service: str, options: str) -> Worker:
    """Start a worker whose state directory is a small file system of its own."""
    script = (
        f'mkdir -p "$NEARDUP_STATE" && mount -t tmpfs -o {options} x "$NEARDUP_STATE" && exec "$0" worker {service}'
    )
    return deployment.start_other("unshare", "-rm", "sh", "-c", script, str(BIN / "neardup"))


async def ended(worker: Worker, seconds: float) -> int:
    return await asyncio.to_thread(worker.process.wait, seconds)


def assert_logged(worker: Worker, *texts: str) -> None:
    log = worker.log.read_text()
    for text in texts:
        assert text in log, log
    assert "Traceback" not in log, log

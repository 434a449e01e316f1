"""What running workers look like from outside: memory by the kernel, the rest by their own metrics."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.services.workers import Worker

MEGABYTE = 2**20
BOUNDS = {"featurizer": 700, "shard": 700, "aggregator": 900, "recluster": 700}
"""Megabytes that a worker may take, what its tables hold aside."""

_SAMPLE = re.compile(r"^(neardup_\w+)(?:\{[^}]*\})? ([-+0-9.e]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Vitals:
    """Of one worker at one moment. Bytes, records, times."""

    at: float
    memory: int
    """Resident, without what the tables of a shard hold: those grow with the pages, by design."""
    tables: int
    lag: int
    rebalances: int


def take_vitals(workers: Mapping[str, Worker]) -> dict[str, Vitals]:
    """Of each worker, by its service."""
    return {name: _of(worker) for name, worker in workers.items()}


def _of(worker: Worker) -> Vitals:
    _, text = worker.get("/metrics")
    sums: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        sums[name] = sums.get(name, 0.0) + float(value)
    tables = int(sums.get("neardup_slice_bytes", 0))
    return Vitals(
        at=time.time(),
        memory=_memory(worker.process.pid, "VmRSS") - tables,
        tables=tables,
        lag=int(sums.get("neardup_lag_records", 0)),
        rebalances=int(sums.get("neardup_rebalances_total", 0)),
    )


def peak_memory(worker: Worker) -> int:
    """The most that a worker ever had, tables and all. Asks nothing of it."""
    return _memory(worker.process.pid, "VmHWM")


def _memory(pid: int, kind: str) -> int:
    found = re.search(rf"{kind}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found, f"process {pid} has ended"
    return int(found[1]) * 1024

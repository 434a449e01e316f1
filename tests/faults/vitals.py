"""Measurements of running workers: memory as reported by the operating system, other values from their metrics."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from neardup.deployment.deployment import FEATURIZING_PROCESSES
from neardup.runtime import runner
from neardup.settings import Settings
from neardup.stream.aggregator import candidates, directory, store
from tests.services.workers import Worker
from tests.support.process_tree import mapped, memory

MEGABYTE = 2**20
_IDLE = 450 * MEGABYTE
"""Interpreter, libraries, compiled kernels and threads, including memory that the allocator does not return."""
_FEATURIZING = 300 * MEGABYTE
"""A process of the featurizer's pool: interpreter, kernels, and the pages that are in flight."""
_FOUND_BYTES = 130
"""A candidate fingerprint as a Python object."""
_CLUSTERED_BYTES = 320
"""Memory of an offline pass per document without sorting, measured with 400 thousand to 1.6 million documents."""

_SAMPLE = re.compile(r"^(neardup_\w+)(?:\{[^}]*\})? ([-+0-9.e]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Vitals:
    """Measurements of one worker at one moment, in bytes, records and seconds."""

    at: float
    memory: int
    """Resident memory without the tables of a shard, which grow with the pages by design, and without mapped files of
    its state, which the system can reclaim."""
    tables: int
    caches: int
    """Memory of the owners' caches, as reported by the owners. Caches fill and then stay at their size."""
    lag: int
    rebalances: int
    passing: bool
    """True while an offline pass runs in the worker."""


def bounds(settings: Settings, clustered: int = 0) -> dict[str, int]:
    """Return the maximum memory in MB of the only worker of each service, without its tables, as the sum of its parts.

    `clustered` is the number of documents of an offline pass in the worker, or 0 without a pass.
    """
    # Records in flight exist twice: as received and as processed.
    any_service = _IDLE + 2 * runner.IN_FLIGHT_BYTES
    an_owner = (
        directory.CACHED_BYTES * 9 // 8
        + candidates.IN_MEMORY * _FOUND_BYTES
        + store.WRITE_BUFFERS * store.WRITE_BUFFER_BYTES
        + store.READ_CACHE_BYTES
    )
    processes = settings.processes or FEATURIZING_PROCESSES
    featurizing = processes * _FEATURIZING if processes > 1 else 0
    a_pass = _IDLE + settings.offline_memory_mb * MEGABYTE + clustered * _CLUSTERED_BYTES if clustered else 0
    parts = {"featurizer": featurizing, "shard": 0, "aggregator": settings.owners * an_owner, "recluster": a_pass}
    return {name: (any_service + part) // MEGABYTE for name, part in parts.items()}


def take_vitals(workers: Mapping[str, Worker], state: Path) -> dict[str, Vitals]:
    """Return the measurements of each worker by service. All state directories are below `state`."""
    return {name: _of(worker, state) for name, worker in workers.items()}


def _of(worker: Worker, state: Path) -> Vitals:
    _, text = worker.get("/metrics")
    sums: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        sums[name] = sums.get(name, 0.0) + float(value)
    tables = int(sums.get("neardup_slice_bytes", 0))
    return Vitals(
        at=time.time(),
        memory=memory(worker.process.pid, "VmRSS") - tables - mapped(worker.process.pid, state),
        tables=tables,
        caches=int(sums.get("neardup_owner_cache_bytes", 0)),
        lag=int(sums.get("neardup_lag_records", 0)),
        rebalances=int(sums.get("neardup_rebalances_total", 0)),
        passing=bool(sums.get("neardup_pass_running")),
    )


def peak_memory(worker: Worker) -> int:
    """Return the peak memory of a worker, tables included, without a request to it."""
    return memory(worker.process.pid, "VmHWM")

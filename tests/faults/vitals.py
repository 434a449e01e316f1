"""What running workers look like from outside: memory by the kernel, the rest by their own metrics."""

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
"""Interpreter, libraries, compiled kernels and threads, with what the allocator does not give back."""
_FEATURIZING = 300 * MEGABYTE
"""A process of the featurizer's pool: interpreter, kernels, and the pages that it has in hand."""
_FOUND_BYTES = 130
"""A fingerprint that was found near another, as an object."""
_CLUSTERED_BYTES = 320
"""What an offline pass holds in memory of each document, sorting aside: seen from 400 thousand to 1.6 million."""

_SAMPLE = re.compile(r"^(neardup_\w+)(?:\{[^}]*\})? ([-+0-9.e]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Vitals:
    """Of one worker at one moment. Bytes, records, times."""

    at: float
    memory: int
    """Resident, without what the tables of a shard hold: those grow with the pages, by design. And without the files of
    its state that it maps: the system takes them back when it needs memory."""
    tables: int
    caches: int
    """Of the memory, what the caches of owners say that they hold: those fill, and then grow no more."""
    lag: int
    rebalances: int
    passing: bool
    """An offline pass runs in it."""


def bounds(settings: Settings, clustered: int = 0) -> dict[str, int]:
    """Megabytes that the only worker of a service may take, what its tables hold aside: the sum of its parts.

    `clustered`: documents of an offline pass in it, if there is one.
    """
    # Once as they came, and once as what is made of them.
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
    """Of each worker, by its service; all keep their state below a directory."""
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
    """The most that a worker ever had, tables and all. Asks nothing of it."""
    return memory(worker.process.pid, "VmHWM")

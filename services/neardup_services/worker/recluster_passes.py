"""Offline passes of a recluster worker: one at a time, and what each found is said to the topics.

A pass is a process of its own: the worker does not wait for it, and its memory is given back with it. The stream goes
first: a pass gets the time that nobody else wants, and takes as long as that takes.
"""

import asyncio
import logging.config
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final

from neardup import metrics
from neardup.deployment.deployment import corpus_address
from neardup.errors import NeardupError
from neardup.log import Output
from neardup.messages.topics import Topics
from neardup.offline.options import Options
from neardup.offline.passes.recluster import RESULTS, run_pass
from neardup.offline.report.report import Report
from neardup.offline.results.publishing import find_unpublished, set_published, unpublished
from neardup.runtime.child_process import belong_to, without_signals
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions
from neardup_services.worker.logs import logging_config

logger = logging.getLogger(__name__)

_NICENESS: Final = 19
"""Of a pass, where the system has nothing lower."""
# Not fork: the worker has threads.
_SPAWN: Final = multiprocessing.get_context("spawn")


class Stopped(NeardupError):
    """The worker stops; the next pass goes on where this one was."""


class PassEnded(NeardupError):
    """Somebody ended the process; the next pass goes on where this one was."""


class Passes:
    """`send` returns when all it was given is acknowledged."""

    def __init__(self, settings: Settings, send: Callable[[Sequence[Output]], Awaitable[None]]) -> None:
        self._settings = settings
        self._results = settings.state / RESULTS
        self._send = send
        self._stopping = _SPAWN.Event()
        self._process: int | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """One pass. An error is logged and counted: the corpus and the last results stay, the next pass tries again."""
        self._idle.clear()
        metrics.PASS_RUNS.set(1)
        started = time.monotonic()
        try:
            report = await self._pass()
            await self._publish()
        except Stopped:
            logger.info("the offline pass was interrupted; the next one goes on with it")
            metrics.PASSES.labels("interrupted").inc()
        except (NeardupError, OSError) as error:
            logger.error("the offline pass failed: %s", error)
            metrics.PASSES.labels("failed").inc()
        else:
            self._measure(report, time.monotonic() - started)
        finally:
            metrics.PASS_RUNS.set(0)
            self._idle.set()

    async def stop(self) -> None:
        """End the pass in hand at its next step or, where that is long in coming, in the middle of one: what its
        phases made stays, and a step is done anew."""
        self._stopping.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), self._settings.stop_seconds)
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
        await self._idle.wait()

    async def _pass(self) -> Report:
        address, options = corpus_address(self._settings), Options.of(self._settings)
        about = (logging_config(self._settings), self._stopping, os.getpid())
        process = ProcessPoolExecutor(1, _SPAWN, _start, about)
        try:
            with without_signals():
                beginning = process.submit(os.getpid)
            self._process = await asyncio.wrap_future(beginning)
            return await asyncio.wrap_future(process.submit(_run, address, self._results, options))
        except BrokenProcessPool as error:
            _go_on(self._stopping)
            raise PassEnded("its process was ended from outside, perhaps for want of memory") from error
        except asyncio.CancelledError:
            self._stopping.set()
            raise
        finally:
            await asyncio.to_thread(process.shutdown)
            self._process = None

    async def _publish(self) -> None:
        settings, topics = self._settings, Topics.under(self._settings.prefix)
        version = SignatureOptions.of(settings).version
        batches = unpublished(self._results, topics, version, settings.verdict_format)
        while (outputs := await asyncio.to_thread(next, batches, None)) is not None:
            _go_on(self._stopping)
            await self._send(outputs)
            metrics.OVERTURNED.inc(sum(output.topic == topics.verdicts for output in outputs))
        await asyncio.to_thread(set_published, self._results)

    def _measure(self, report: Report, seconds: float) -> None:
        metrics.PASSES.labels("done").inc()
        metrics.PASS_SECONDS.set(seconds)
        metrics.PASS_TIME.set_to_current_time()
        metrics.CLUSTERED.set(report.documents)
        metrics.CLUSTERS.set(report.clusters)
        logger.info(
            "offline pass: %d documents, %d new, %d clusters, %d verdicts overturned, %.1f s",
            report.documents, report.new_documents, report.clusters, report.overturned, seconds,
        )  # fmt: skip


_stopping: Event
"""In the process of a pass: whether its worker stops."""


def _start(logs: dict[str, Any], stopping: Event, worker: int) -> None:
    global _stopping
    belong_to(worker)
    _give_way()
    logging.config.dictConfig(logs)
    _stopping = stopping


def _give_way() -> None:
    """A nice process still keeps a processor for some milliseconds from one that wakes up: beside a busy stream that
    doubled the time from a page to its verdict. An idle one gives it up at once."""
    if sys.platform == "linux":
        with suppress(OSError):  # by the rules of a container, or a kernel that has no such thing
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.nice(_NICENESS)


def _run(corpus: str, results: Path, options: Options) -> Report:
    report = run_pass(corpus, results, options, lambda phase, done, of: _go_on(_stopping))
    find_unpublished(results)
    return report


def _go_on(stopping: Event) -> None:
    if stopping.is_set():
        raise Stopped("the worker stops")

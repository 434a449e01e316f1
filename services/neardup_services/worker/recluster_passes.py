"""Offline passes of a recluster worker, one at a time, and the publication of their results to the topics.

A pass runs in a process of its own, so that the worker does not wait for it and its memory is released at the end. The
stream has priority: a pass uses only idle processor time.
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
"""Priority of a pass where the system has no idle scheduling."""
_KILL_SECONDS: Final = 0.1
"""Time between attempts to kill a process that does not stop."""
# A fork of a process with threads, such as the worker, may deadlock.
_SPAWN: Final = multiprocessing.get_context("spawn")


class Stopped(NeardupError):
    """The worker stops; the next pass resumes."""


class PassEnded(NeardupError):
    """The process of the pass was killed; the next pass resumes."""


class Passes:
    """Runs offline passes. `send` returns when all its outputs are acknowledged."""

    def __init__(self, settings: Settings, send: Callable[[Sequence[Output]], Awaitable[None]]) -> None:
        self._settings = settings
        self._results = settings.state / RESULTS
        self._send = send
        self._stopping = _SPAWN.Event()
        self.process: int | None = None
        """The pid of the running pass, once it has started."""
        self._sending: asyncio.Future[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Run one pass. Errors are logged and counted.

        After an error the corpus and the last results stay as they are, and the next pass tries again.
        """
        self._idle.clear()
        metrics.PASS_RUNS.set(1)
        started = time.monotonic()
        try:
            report = await self._pass()
            await self._publish()
        except Stopped:
            logger.info("the offline pass was interrupted; the next one resumes")
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
        """End the running pass at its next step, or kill it after the stop timeout.

        Completed phases are kept; an interrupted step is repeated by the next pass.
        """
        self._stopping.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), self._settings.stop_seconds)
        if self._sending is not None:
            # Without a broker it would wait until the request timeout.
            self._sending.cancel()
        while not self._idle.is_set():
            # A process that is still starting has no pid yet.
            if self.process is not None:
                with suppress(ProcessLookupError):
                    os.kill(self.process, signal.SIGKILL)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), _KILL_SECONDS)

    async def _pass(self) -> Report:
        address, options = corpus_address(self._settings), Options.of(self._settings)
        arguments = (logging_config(self._settings), self._stopping, os.getpid())
        process = ProcessPoolExecutor(1, _SPAWN, _initialize, arguments)
        try:
            with without_signals():
                started_pid = process.submit(os.getpid)
            self.process = await asyncio.wrap_future(started_pid)
            return await asyncio.wrap_future(process.submit(_run, address, self._results, options))
        except BrokenProcessPool as error:
            _raise_if_stopping(self._stopping)
            raise PassEnded("its process was killed, perhaps because memory ran out; the next pass resumes") from error
        except asyncio.CancelledError:
            self._stopping.set()
            raise
        finally:
            await asyncio.to_thread(process.shutdown)
            self.process = None

    async def _publish(self) -> None:
        settings, topics = self._settings, Topics.under(self._settings.prefix)
        version = SignatureOptions.of(settings).version
        batches = unpublished(self._results, topics, version, settings.verdict_format)
        while (outputs := await asyncio.to_thread(next, batches, None)) is not None:
            _raise_if_stopping(self._stopping)
            self._sending = asyncio.ensure_future(self._send(outputs))
            try:
                await self._sending
            except asyncio.CancelledError:
                _raise_if_stopping(self._stopping)
                raise
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
"""An event in the process of a pass, which is set when the worker stops."""


def _initialize(logs: dict[str, Any], stopping: Event, worker: int) -> None:
    global _stopping
    belong_to(worker)
    _lower_priority()
    logging.config.dictConfig(logs)
    _stopping = stopping


def _lower_priority() -> None:
    """Run only on idle processors, or at the lowest priority if the system does not support idle scheduling.

    A process with a low priority keeps the processor for some milliseconds after another process wakes up, which
    doubled the time from page to verdict under load. A process with idle scheduling yields at once.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # forbidden in a container, or unknown to the kernel
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.nice(_NICENESS)


def _run(corpus: str, results: Path, options: Options) -> Report:
    report = run_pass(corpus, results, options, lambda phase, done, of: _raise_if_stopping(_stopping))
    find_unpublished(results)
    return report


def _raise_if_stopping(stopping: Event) -> None:
    if stopping.is_set():
        raise Stopped("the worker stops")

"""Offline passes of a recluster worker: one at a time, in a thread, and what each found is said to the topics."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from neardup import metrics
from neardup.deployment import corpus_address
from neardup.errors import NeardupError
from neardup.log import Output
from neardup.offline.options import Options
from neardup.offline.passing import RESULTS, run_pass
from neardup.offline.publishing import set_published, unpublished
from neardup.offline.report import Report
from neardup.settings import Settings
from neardup.signature import Choices
from neardup.topics import Topics

logger = logging.getLogger(__name__)


class Stopped(NeardupError):
    """The worker stops; the next pass goes on where this one was."""


class Passes:
    """`send` returns when all it was given is acknowledged."""

    def __init__(self, settings: Settings, send: Callable[[Sequence[Output]], Awaitable[None]]) -> None:
        self._settings = settings
        self._results = settings.state / RESULTS
        self._send = send
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """One pass. An error is logged and counted: the corpus and the last results stay, the next pass tries again."""
        self._idle.clear()
        started = time.monotonic()
        try:
            report = await asyncio.to_thread(self._pass)
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
            self._idle.set()

    async def stop(self) -> None:
        """End the pass in hand at its next step."""
        self._stopping = True
        await self._idle.wait()

    def _pass(self) -> Report:
        settings = self._settings
        return run_pass(corpus_address(settings), self._results, Options.of(settings), self._progress)

    def _progress(self, phase: str, done: int, of: int) -> None:
        if self._stopping:
            raise Stopped("the worker stops")

    async def _publish(self) -> None:
        settings, topics = self._settings, Topics.under(self._settings.prefix)
        version = Choices.of(settings).version
        batches = unpublished(self._results, topics, version, settings.verdict_format)
        while (outputs := await asyncio.to_thread(next, batches, None)) is not None:
            self._progress("publish", 0, 1)
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

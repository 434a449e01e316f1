"""Tests of offline passes of a worker: each runs in a process of its own, with a lower priority than the stream."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from neardup import metrics
from neardup.deployment.deployment import corpus_address
from neardup.log import Output
from neardup.offline.corpus.corpus import Corpus
from neardup.offline.passes.recluster import RESULTS
from neardup.offline.queries.index_reader import FILE
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions
from neardup_services.worker.recluster_passes import Passes
from tests.bench import made_corpus


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return settings with a corpus that takes a pass some seconds."""
    settings = Settings(state=tmp_path / "state")
    made_corpus.write(made_corpus.make(30_000), Corpus(corpus_address(settings)), SignatureOptions.of(settings).version)
    return settings


def ended(result: str) -> float:
    return float(metrics.PASSES.labels(result)._value.get())


class Sent:
    """A sender that records the outputs."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []

    async def send(self, outputs: Sequence[Output]) -> None:
        self.outputs.extend(outputs)


@asynccontextmanager
async def running(passes: Passes) -> AsyncIterator[int]:
    """Provide the process of a running pass. Afterwards the process has ended."""
    task = asyncio.create_task(passes.run())
    async with asyncio.timeout(60):
        while (process := passes.process) is None:
            await asyncio.sleep(0.01)
    yield process
    async with asyncio.timeout(120):
        await task
    assert not Path(f"/proc/{process}").exists()


async def test_a_pass_runs_in_its_own_process_with_low_priority(settings: Settings) -> None:
    sent, done = Sent(), ended("done")
    async with running(Passes(settings, sent.send)) as process:
        assert os.getpriority(os.PRIO_PROCESS, process) == 19
        assert os.sched_getscheduler(process) == os.SCHED_IDLE
        assert metrics.PASS_RUNS._value.get() == 1
    assert metrics.PASS_RUNS._value.get() == 0
    assert ended("done") == done + 1
    assert len(sent.outputs) >= 30_000
    assert (settings.state / RESULTS / FILE).exists()


async def test_a_worker_that_stops_ends_its_pass_at_the_next_step(settings: Settings) -> None:
    sent, interrupted = Sent(), ended("interrupted")
    passes = Passes(settings, sent.send)
    async with running(passes):
        await passes.stop()
        assert metrics.PASS_RUNS._value.get() == 0
    assert ended("interrupted") == interrupted + 1
    assert not sent.outputs


async def test_a_worker_that_stops_does_not_wait_for_a_long_step(settings: Settings) -> None:
    sent, interrupted, done = Sent(), ended("interrupted"), ended("done")
    passes = Passes(replace(settings, stop_seconds=0.5), sent.send)
    async with running(passes) as process:
        os.kill(process, signal.SIGSTOP)  # simulates a step that never ends
        async with asyncio.timeout(10):
            await passes.stop()
    assert ended("interrupted") == interrupted + 1
    await Passes(settings, sent.send).run()
    assert ended("done") == done + 1
    assert len(sent.outputs) >= 30_000


async def test_a_killed_pass_is_reported_and_the_next_one_resumes(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    sent, failed, done = Sent(), ended("failed"), ended("done")
    passes = Passes(settings, sent.send)
    async with running(passes) as process:
        os.kill(process, signal.SIGKILL)
    assert ended("failed") == failed + 1
    assert "memory ran out" in caplog.text
    await passes.run()
    assert ended("done") == done + 1
    assert len(sent.outputs) >= 30_000


async def test_a_stop_meant_for_the_worker_does_not_end_its_pass(settings: Settings) -> None:
    done = ended("done")
    async with running(Passes(settings, Sent().send)) as process:
        assert os.getpgid(process) != os.getpgid(0), "expected it to leave the process group that receives Ctrl-C"
        os.kill(process, signal.SIGINT)
    assert ended("done") == done + 1

"""Compiles the kernels that the services call, and loads them into a worker before its first page.

Numba compiles or loads a kernel at its first call, which blocks the whole process: without preparation, the first page
would wait for every kernel that it needs. `compile_kernels` runs a small sample crawl through every stage and an
offline pass in a temporary directory, so that the cache on disk contains all kernels, and marks the cache as complete.
`ensure_loaded` then loads them into a worker without running a stage, which would affect its metrics.
"""

import asyncio
import fcntl
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from neardup.deployment.deployment import SERVICES, Deployment
from neardup.embedded.embedded import Embedded
from neardup.kernels import cache
from neardup.log import Partition, PlainRecord
from neardup.messages.pages import write_page
from neardup.offline.options import Options
from neardup.offline.passes.recluster import run_pass
from neardup.sample.crawl import sample_crawl
from neardup.settings import Settings
from neardup.types import Page

_PAGES: Final = 400
_KERNEL_SETTINGS: Final = ("search", "codec", "bands", "spots", "pair_sources", "phrases", "weighting", "main_content")
"""Settings that determine which kernels are called and with which argument types."""

Progress = Callable[[str], None]


def compile_kernels(settings: Settings, progress: Progress = lambda step: None) -> int | None:
    """Fill the cache for these settings; return the number of compiled functions, or None if it was already filled.

    Takes about a minute on a new machine. Processes that call this at the same time wait for the first one. Raises
    OSError if the cache cannot be written.
    """
    if are_compiled(settings):
        return None
    with _locked(cache.folder() / cache.LOCK):
        if are_compiled(settings):
            return None
        before = cache.file_count()
        with tempfile.TemporaryDirectory() as scratch:
            asyncio.run(_run_everything(_scratch_settings(settings), Path(scratch), progress))
        _mark(settings).touch()
        return cache.file_count() - before


def are_compiled(settings: Settings) -> bool:
    """Return whether the cache is filled for these settings."""
    return _mark(settings).exists()


async def ensure_loaded(settings: Settings, progress: Progress) -> None:
    """Compile missing kernels in a separate process, then load all of them. Cancellation ends that process."""
    if not are_compiled(settings):
        progress("compiling kernels, once per machine and release; this takes about a minute")
        # A separate process, because compilation would block this one and the crawl would affect its metrics.
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "neardup_services.cli", "warm-up")
        try:
            code = await process.wait()
        except BaseException:
            process.terminate()
            await process.wait()
            raise
        if code or not are_compiled(settings):
            progress(f"`neardup warm-up` ended with exit code {code}; kernels are compiled when they are first called")
            return
    started = time.perf_counter()
    count = await asyncio.to_thread(cache.load)
    progress(f"loaded {count} compiled functions in {time.perf_counter() - started:.1f} s")


async def _run_everything(settings: Settings, scratch: Path, progress: Progress) -> None:
    pages = [each.page for each in sample_crawl(_PAGES)]
    progress("stream")
    async with Embedded(scratch / "state", settings, on_verdict=lambda verdict: None) as stream:
        # Stages call other kernels for a single page than for many.
        await stream.feed(pages[:1])
        await stream.drain()
        await stream.feed(pages[1:])
        await stream.finish()
    progress("canaries")
    _plant_canaries(settings, pages)
    progress("offline pass")
    await asyncio.to_thread(
        run_pass, str(scratch / "state" / "corpus"), scratch / "results", Options.of(settings), lambda *_: None
    )


def _plant_canaries(settings: Settings, pages: list[Page]) -> None:
    deployment = Deployment(replace(settings, canary_share=1.0))
    topic = deployment.topics.pages
    stage = SERVICES["canary"].make_stage(deployment, Partition(topic, 0))
    stage.process([PlainRecord(topic, 0, n, n, None, write_page(page), ()) for n, page in enumerate(pages)])


def _scratch_settings(settings: Settings) -> Settings:
    # One process, because several would compile the same kernels at the same time.
    return replace(settings, processes=1, generation=0)


def _mark(settings: Settings) -> Path:
    chosen = repr([getattr(settings, name) for name in _KERNEL_SETTINGS])
    return cache.folder() / f"complete-{hashlib.sha256(chosen.encode()).hexdigest()[:16]}"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

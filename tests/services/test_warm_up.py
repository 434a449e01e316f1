"""Tests that kernels are compiled and loaded before the first page."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from neardup.deployment.deployment import Deployment
from neardup.log import PlainRecord
from neardup.messages.pages import write_page
from neardup.sample.crawl import sample_crawl
from neardup.settings import Settings
from neardup.kernels import cache
from neardup_services.worker import faust_app  # imports every module of a worker
from tests.support.wired import Wired

settings = Settings(processes=1)
assert cache.load() > 100

def refuse(self, signature):
    raise AssertionError(f"{self.py_func.__module__}.{self.py_func.__name__} was not loaded for {signature}")

pages = [write_page(each.page) for each in sample_crawl(300, seed=5)]
records = [PlainRecord("neardup.pages", 0, number, 5, None, page, ()) for number, page in enumerate(pages)]
# Opens the stages, like a worker before it is ready.
stream = Wired(settings, Path(sys.argv[1]), Deployment(settings).page_pool)
Dispatcher.compile = refuse
verdicts = stream.take(records[:1]) + stream.take(records[1:])
assert not stream.rejected
assert {each.verdict for each in verdicts} == {"unique", "duplicate", "skipped"}
stream.close()
"""


def _run(*command: str, cache: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_first_page_calls_only_loaded_kernels(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = _run("-m", "neardup_services.cli", "warm-up", cache=cache)
    assert first.startswith("compiled "), first
    assert _run("-m", "neardup_services.cli", "warm-up", cache=cache).startswith("already compiled: ")
    _run("-c", PROGRAM, str(tmp_path / "state"), cache=cache)

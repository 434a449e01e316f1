"""Tests with damaged files of the corpus and of offline passes: a pass reports the damage or ends as expected."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from neardup.errors import StateError
from neardup.offline.options import Options
from neardup.offline.passes.recluster import reset_pass, run_pass
from neardup.settings import Settings
from tests.faults.damage import DAMAGES, files_under
from tests.faults.in_process import Stream
from tests.faults.results import record

pytestmark = pytest.mark.faults

ROUNDS = int(os.environ.get("NEARDUP_TEST_FAULT_ROUNDS", "1"))
CASES = 5 * ROUNDS
OPTIONS = Options.of(Settings())
Clusters = list[dict[str, Any]]


@pytest.fixture(scope="module")
def corpus(half_way: Stream) -> Path:
    """Return a corpus of several files with a few dozen pages."""
    return half_way.settings.state / "corpus"


@pytest.fixture(scope="module")
def first_pass(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of a pass over half of the files."""
    directory = tmp_path_factory.mktemp("first")
    (directory / "corpus").mkdir()
    for path in files_under(corpus)[: len(files_under(corpus)) // 2]:
        shutil.copy(path, directory / "corpus")
    run_pass(str(directory / "corpus"), directory / "results", OPTIONS)
    return directory / "results"


@pytest.fixture(scope="module")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Clusters:
    directory = tmp_path_factory.mktemp("expected")
    run_pass(str(corpus), directory, OPTIONS)
    return clusters_in(directory)


def test_a_damaged_corpus_is_reported_or_harmless(corpus: Path, tmp_path: Path, expected: Clusters) -> None:
    detected = 0
    for number in range(CASES):
        draw, damaged = random.Random(f"corpus {number}"), tmp_path / f"corpus-{number}"
        shutil.copytree(corpus, damaged)
        victim = draw.choice(files_under(damaged))
        DAMAGES[number % len(DAMAGES)](victim, draw)
        try:
            run_pass(str(damaged), tmp_path / f"results-{number}", OPTIONS)
        except StateError as error:
            detected += 1
            message = str(error)
        else:
            message = ""
        assert victim.name in message or clusters_in(tmp_path / f"results-{number}") == expected, victim
    record("a file of the corpus damaged", times=CASES, detected=detected, harmless=CASES - detected)
    assert detected


def test_damaged_results_are_reported_or_harmless(
    corpus: Path, first_pass: Path, tmp_path: Path, expected: Clusters
) -> None:
    """Damage the results before a pass that resumes from them. Without the results, the pass succeeds."""
    detected = 0
    for number in range(2 * CASES):
        draw, results = random.Random(f"results {number}"), tmp_path / f"results-{number}"
        shutil.copytree(first_pass, results)
        # Only queries read the index and the report; every pass rebuilds them.
        victim = draw.choice([path for path in files_under(results) if path.suffix not in (".sqlite", ".html")])
        DAMAGES[number % len(DAMAGES)](victim, draw)
        try:
            run_pass(str(corpus), results, OPTIONS)
        except StateError as error:
            detected += 1
            assert str(results) in str(error), victim  # noqa: PT017
            reset_pass(results)
            victim.unlink(missing_ok=True)
            run_pass(str(corpus), results, OPTIONS)
        assert clusters_in(results) == expected, victim
    record("a file of a pass damaged", times=2 * CASES, detected=detected, harmless=2 * CASES - detected)
    assert detected


def clusters_in(results: Path) -> Clusters:
    rows: Clusters = pyarrow.parquet.read_table(results / "clusters.parquet").to_pylist()
    return rows

"""Tests with lost or damaged state: a worker rebuilds the state from the log, or reports the damage and stops.

Its verdicts are never different from those with intact state.
"""

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from neardup.embedded.deduplicator import Deduplicator
from neardup.errors import StateError
from neardup.index.snapshot import MAGIC, VERSION
from neardup.settings import Settings
from neardup.types import Kind, Verdict
from neardup.util import array_file
from tests.faults.conftest import HALF, PAGES
from tests.faults.damage import DAMAGES, files_under
from tests.faults.in_process import Stream
from tests.faults.results import record

pytestmark = pytest.mark.faults

ROUNDS = int(os.environ.get("NEARDUP_TEST_FAULT_ROUNDS", "1"))
CASES = 2 if ROUNDS == 1 else 3 * ROUNDS


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Kind]:
    directory = tmp_path_factory.mktemp("embedded")
    with Deduplicator(directory / "state", Settings(state=directory)) as known:
        return [verdict.verdict for verdict in known.add_all(PAGES)]


def kinds(verdicts: Sequence[Verdict]) -> list[Kind]:
    for number, verdict in enumerate(verdicts):
        if verdict.duplicate_of is not None:
            assert int(verdict.duplicate_of.document.partition(":")[2]) < number
    return [verdict.verdict for verdict in verdicts]


@pytest.mark.parametrize("lost", ["bad.probes-*", "bad.inbox-*", "corpus", "*"])
async def test_lost_state_is_rebuilt_from_the_log(
    half_way: Stream, tmp_path: Path, lost: str, expected: list[Kind]
) -> None:
    stream = await half_way.copy_to(tmp_path / "state")
    directories = list(stream.settings.state.glob(lost))
    assert directories
    for directory in directories:
        shutil.rmtree(directory)
    assert kinds(await stream.take(PAGES[HALF:])) == expected
    assert {each.name for each in stream.settings.state.glob(lost)} == {each.name for each in directories}


def test_a_damaged_snapshot_is_refused_or_reads_the_same(half_way: Stream, tmp_path: Path) -> None:
    """Compare the keys: verdicts rarely show a key that is missing in one table, because other tables find the page."""
    slices = sorted(half_way.settings.state.glob("bad.probes-*/slice"))
    detected = 0
    for number in range(200):
        draw, damaged = random.Random(number), tmp_path / "slice"
        whole = draw.choice(slices)
        shutil.copy(whole, damaged)
        DAMAGES[number % len(DAMAGES)](damaged, draw)
        expected = array_file.read(whole, magic=MAGIC, version=VERSION)
        try:
            got = array_file.read(damaged, magic=MAGIC, version=VERSION)
        except StateError:
            detected += 1
            continue
        assert got.about == expected.about
        for name, array in expected.arrays.items():
            np.testing.assert_array_equal(got.arrays[name], array)
    assert detected > 20


@pytest.mark.parametrize("topic", ["probes", "inbox"])
async def test_damaged_state_is_reported_or_harmless(
    half_way: Stream, tmp_path: Path, topic: str, expected: list[Kind]
) -> None:
    detected = 0
    for number in range(CASES):
        draw = random.Random(f"{topic} {number}")
        state = tmp_path / str(number)
        stream = await half_way.copy_to(state)
        victim = draw.choice([path for each in state.glob(f"bad.{topic}-*") for path in files_under(each)])
        DAMAGES[number % len(DAMAGES)](victim, draw)
        directory = state / victim.relative_to(state).parts[0]
        message = ""
        try:
            verdicts = await stream.take(PAGES[HALF:])
        except StateError as error:
            message = str(error)
        if message:
            # The remedy that the message suggests works.
            assert str(directory) in message
            detected += 1
            shutil.rmtree(directory)
            verdicts = await stream.take([])
        assert kinds(verdicts) == expected, victim
        shutil.rmtree(state)
    record(f"a file of {topic} damaged", times=CASES, detected=detected, harmless=CASES - detected)
    assert detected, "expected that some damage is detected"

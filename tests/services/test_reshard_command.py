"""Tests of the output and effects of `neardup reshard --state`. For Kafka see tests/resharding/test_cluster.py."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from neardup.embedded.deduplicator import Deduplicator
from neardup.settings import Settings
from neardup.types import Page
from neardup_services.cli import main
from tests.support.documents import text_of

SETTINGS = {"NEARDUP_TABLES": "4", "NEARDUP_BANDS": "3x4", "NEARDUP_PROCESSES": "1"}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    with Deduplicator(tmp_path, Settings.load(SETTINGS)) as known:
        known.add_all([Page(f"http://a/{n}", text=" ".join(text_of(n))) for n in range(3)])
    return tmp_path


def reshard(*arguments: str | Path, **settings: str) -> Result:
    return CliRunner(env=SETTINGS | settings).invoke(main, ["reshard", *map(str, arguments)])


def files(state: Path) -> dict[str, bytes]:
    return {str(path.relative_to(state)): path.read_bytes() for path in state.rglob("slice")}


def test_a_dry_run_prints_the_changes_and_makes_none(state: Path) -> None:
    before = files(state)
    done = reshard("--state", state, "--dry-run")
    assert done.exit_code == 0, done.output
    assert "6 shard partitions and 1 owners become 12 and 1" in done.output
    assert "settings to change after resharding:\n  NEARDUP_SLICE_BITS=1  (was 0)\n" in done.output
    assert files(state) == before


def test_it_prints_the_settings_for_the_next_run(state: Path) -> None:
    done = reshard("--state", state)
    assert done.exit_code == 0, done.output
    assert "simhash/3: 3 keys\nbands: 9 keys\n" in done.output
    printed = dict(line.strip().split("  ")[0].split("=") for line in done.output.splitlines() if line.startswith("  "))
    assert printed == {"NEARDUP_SLICE_BITS": "1", "NEARDUP_BAND_SLICE_BITS": "2"}
    with Deduplicator(state, Settings.load(SETTINGS | printed)) as known:
        assert known.add(Page("http://b/", text=" ".join(text_of(1)))).duplicate_of is not None


def test_a_state_directory_has_exactly_one_owner(state: Path) -> None:
    done = reshard("--state", state, "--owners", "2")
    assert done.exit_code == 2
    assert "a state directory has one owner" in done.output


def test_other_settings_than_those_of_the_state_are_one_clear_line(state: Path) -> None:
    done = reshard("--state", state, NEARDUP_HAMMING="2")
    assert done.exit_code == 1
    assert "use the settings that the state was made with" in done.output

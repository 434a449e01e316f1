"""Tests of resharding of a state directory: later pages get the same verdicts as without resharding."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from neardup.embedded.embedded import FILE, Embedded, read_progress
from neardup.errors import InputError, SettingsError, StateInUse, WrongState
from neardup.messages.verdicts import read_verdict
from neardup.resharding import state_directory
from neardup.resharding.resharding import Resharding
from neardup.resharding.state_directory import plan_resharding, reshard_state
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup.types import Kind, Page, Verdict

SETTINGS = Settings(tables=4, bands="4x8", processes=1)
PAGES = [made.page for made in sample_crawl(240, seed=31, mean_bytes=8000)]
HALF = len(PAGES) // 2


async def verdicts(state: Path, settings: Settings, pages: Sequence[Page]) -> list[Verdict]:
    emitted: list[Verdict] = []
    async with Embedded(state, settings, on_verdict=lambda value: emitted.append(read_verdict(value))) as stream:
        await stream.feed(pages)
        await stream.finish()
    return emitted


def without_clock(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return the last verdicts without the fields that depend on the clock."""
    last = {each.document: each for each in sorted(verdicts, key=lambda each: each.revision)}
    return [asdict(replace(last[document], latency_ms=None)) for document in sorted(last)]


def resharded(state: Path, settings: Settings, **wishes: int) -> Settings:
    """Reshard and return the new settings."""
    resharding = plan_resharding(state, settings, **wishes)
    reshard_state(state, resharding)
    new = resharding.new.settings
    return replace(settings, slice_bits=new.slice_bits, band_slice_bits=new.band_slice_bits)


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        replace(SETTINGS, search="probabilistic", header_bits=12),
        replace(SETTINGS, slice_bits=1, ttl_hours=24.0, common_bucket=3),
    ],
    ids=["exact", "probabilistic", "with limits"],
)
async def test_the_second_half_of_a_crawl_gets_the_same_emittedas_without_resharding(
    tmp_path: Path, settings: Settings
) -> None:
    await verdicts(tmp_path / "undisturbed", settings, PAGES[:HALF])
    shutil.copytree(tmp_path / "undisturbed", tmp_path / "resharded")
    expected = without_clock(await verdicts(tmp_path / "undisturbed", settings, PAGES[HALF:]))
    new = resharded(tmp_path / "resharded", settings)
    assert new.band_slice_bits == settings.band_slice_bits + 1
    assert without_clock(await verdicts(tmp_path / "resharded", new, PAGES[HALF:])) == expected
    assert sum(each["verdict"] == Kind.DUPLICATE and "0:" in each["document"] for each in expected) > HALF / 5


async def test_resharding_can_be_repeated_and_reversed(tmp_path: Path) -> None:
    await verdicts(tmp_path / "undisturbed", SETTINGS, PAGES[:HALF])
    shutil.copytree(tmp_path / "undisturbed", tmp_path / "resharded")
    expected = without_clock(await verdicts(tmp_path / "undisturbed", SETTINGS, PAGES[HALF:]))
    settings = SETTINGS
    for wishes in ({}, {"slice_bits": 3}, {"slice_bits": 0, "band_slice_bits": SETTINGS.band_slice_bits}):
        settings = resharded(tmp_path / "resharded", settings, **wishes)
    assert settings == SETTINGS
    assert without_clock(await verdicts(tmp_path / "resharded", settings, PAGES[HALF:])) == expected
    progress = read_progress(tmp_path / "resharded")
    assert progress is not None
    assert progress.generation == 3
    kept = {path.name.rpartition("-")[0] for path in (tmp_path / "resharded").glob("neardup.*")}
    assert kept == {"neardup.3.probes", "neardup.3.inbox"}


async def test_a_crash_leaves_the_state_unchanged_and_resharding_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await verdicts(tmp_path, SETTINGS, PAGES[:HALF])
    before = (tmp_path / FILE).read_text()
    shutil.copytree(tmp_path, tmp_path.with_name("undisturbed"))
    expected = without_clock(await verdicts(tmp_path.with_name("undisturbed"), SETTINGS, PAGES[HALF:]))

    def crash(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(state_directory, "write_progress", crash)
    with pytest.raises(OSError, match="no space"):
        resharded(tmp_path, SETTINGS)
    monkeypatch.undo()
    assert (tmp_path / FILE).read_text() == before
    assert without_clock(await verdicts(tmp_path, resharded(tmp_path, SETTINGS), PAGES[HALF:])) == expected


async def test_the_old_settings_are_refused_afterwards(tmp_path: Path) -> None:
    await verdicts(tmp_path, SETTINGS, PAGES[:2])
    resharded(tmp_path, SETTINGS)
    with pytest.raises(WrongState, match="use the settings that the state was made with"):
        await verdicts(tmp_path, SETTINGS, [])
    with pytest.raises(WrongState, match="use the settings that the state was made with"):
        plan_resharding(tmp_path, SETTINGS)


async def test_an_interrupted_run_must_be_finished_first(tmp_path: Path) -> None:
    async with Embedded(tmp_path, SETTINGS, on_verdict=lambda value: None) as stream:
        await stream.feed(PAGES[:5])
    with pytest.raises(WrongState, match="got one that was interrupted"):
        plan_resharding(tmp_path, SETTINGS)


async def test_a_directory_in_use_is_refused_and_unchanged(tmp_path: Path) -> None:
    await verdicts(tmp_path, SETTINGS, PAGES[:5])
    resharding = plan_resharding(tmp_path, SETTINGS)
    async with Embedded(tmp_path, SETTINGS, on_verdict=lambda value: None) as stream:
        before = {path.name for path in tmp_path.iterdir()}
        for attempt in (lambda: plan_resharding(tmp_path, SETTINGS), lambda: reshard_state(tmp_path, resharding)):
            with pytest.raises(StateInUse, match="already in use by this process"):
                attempt()
        assert {path.name for path in tmp_path.iterdir()} == before
        await stream.finish()
    reshard_state(tmp_path, resharding)


async def test_a_plan_of_a_directory_that_has_changed_since_is_refused(tmp_path: Path) -> None:
    await verdicts(tmp_path, SETTINGS, PAGES[:5])
    resharding = plan_resharding(tmp_path, SETTINGS)
    async with Embedded(tmp_path, SETTINGS, on_verdict=lambda value: None) as stream:
        await stream.feed(PAGES[5:8])
    with pytest.raises(WrongState, match="got one that was interrupted"):
        reshard_state(tmp_path, resharding)


def test_a_directory_without_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the state of `neardup dedup`"):
        plan_resharding(tmp_path, SETTINGS)


@pytest.mark.parametrize(
    ("wishes", "message"),
    [({"slice_bits": 0}, "got the present numbers"), ({"slice_bits": 17, "owners": 3}, "NEARDUP_SLICE_BITS: expected")],
)
def test_an_impossible_resharding_is_refused(wishes: dict[str, int], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Resharding.of(replace(SETTINGS, owners=2), **wishes)

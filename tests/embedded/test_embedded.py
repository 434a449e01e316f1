"""Tests of the whole stream in one process: it resumes from its state after a clean end and after a crash."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from neardup.embedded.embedded import FILE, Embedded
from neardup.errors import CorruptState, WrongState
from neardup.messages.orders import Forget
from neardup.messages.verdicts import read_verdict
from neardup.runtime.runner import Runner
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup.types import Kind, Page, Verdict

SETTINGS = Settings(tables=4, bands="4x8", processes=1)
PAGES = [made.page for made in sample_crawl(120, seed=11, mean_bytes=8000)]


class Crash(Exception):
    pass


def last(verdicts: Sequence[Verdict]) -> dict[str, Verdict]:
    return {each.document: each for each in sorted(verdicts, key=lambda each: each.revision)}


async def run(
    state: Path,
    pages: Sequence[Page],
    *,
    save_at: int | None = None,
    crash_at: int | None = None,
    settings: Settings = SETTINGS,
) -> list[Verdict]:
    """Feed pages; optionally save or crash after some of them. Return the verdicts."""
    verdicts: list[Verdict] = []
    try:
        async with Embedded(state, settings, on_verdict=lambda value: verdicts.append(read_verdict(value))) as stream:
            for number, page in enumerate(pages):
                if number == save_at:
                    await stream.save({"taken": number})
                if number == crash_at:
                    await stream.drain()
                    raise Crash
                await stream.feed([page])
            await stream.finish({"taken": len(pages)})
    except Crash:
        pass
    return verdicts


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Kind]:
    """Return the verdicts of an uninterrupted run."""
    verdicts = asyncio.run(run(tmp_path_factory.mktemp("whole"), PAGES))
    assert len(last(verdicts)) == len(PAGES)
    return [last(verdicts)[f"0:{number}"].verdict for number in range(len(PAGES))]


def kinds(verdicts: Sequence[Verdict]) -> list[Kind]:
    by_document = last(verdicts)
    return [by_document[f"0:{number}"].verdict for number in range(len(by_document))]


async def test_a_second_run_compares_with_the_pages_of_the_first(tmp_path: Path, expected: list[Kind]) -> None:
    first = await run(tmp_path, PAGES[:70])
    second = await run(tmp_path, PAGES[70:])
    assert kinds([*first, *second]) == expected
    assert Kind.DUPLICATE in {verdict.verdict for verdict in second}


async def test_after_a_crash_the_pages_since_the_last_save_are_fed_again(tmp_path: Path, expected: list[Kind]) -> None:
    before = await run(tmp_path, PAGES, save_at=40, crash_at=90)
    after = await run(tmp_path, PAGES[40:])
    # A verdict may be repeated, but must not change.
    again = {verdict.document: verdict.verdict for verdict in after}
    assert all(again.get(verdict.document, verdict.verdict) == verdict.verdict for verdict in last(before).values())
    assert kinds([*before, *after]) == expected


async def test_pages_after_the_last_save_of_an_unfinished_run_are_discarded(tmp_path: Path) -> None:
    """Otherwise other pages that are fed in their place would be taken for them and would get no verdict."""
    await run(tmp_path, PAGES[:60], save_at=20, crash_at=50)
    after = await run(tmp_path, PAGES[60:])
    assert {verdict.document for verdict in after} == {f"0:{number}" for number in range(20, 20 + len(PAGES) - 60)}


async def test_a_crash_in_the_middle_of_a_save_loses_nothing(
    tmp_path: Path, expected: list[Kind], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not all stages have saved their state. The progress file determines which pages count."""
    save = Runner.save

    async def torn(self: Runner) -> None:
        await save(self)
        if self._group.endswith("shard"):
            raise Crash

    monkeypatch.setattr(Runner, "save", torn)
    before = await run(tmp_path, PAGES, save_at=60)
    monkeypatch.undo()
    progress = json.loads((tmp_path / FILE).read_text())
    assert (progress["pages"], progress["notes"], progress["saving"]) == (0, None, {"taken": 60})
    after = await run(tmp_path, PAGES)
    assert kinds([*before, *after]) == expected


async def test_notes_that_the_caller_changes_later_count_only_from_the_next_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def torn(self: Runner) -> None:
        raise Crash

    notes = {"taken": 3}
    async with Embedded(tmp_path, SETTINGS, on_verdict=lambda value: None) as stream:
        await stream.feed(PAGES[:3])
        await stream.save(notes)
        await stream.feed(PAGES[3:5])
        notes["taken"] = 5
        monkeypatch.setattr(Runner, "save", torn)
        with pytest.raises(Crash):
            await stream.save(notes)
    progress = json.loads((tmp_path / FILE).read_text())
    assert (progress["pages"], progress["notes"], progress["saving"]) == (3, {"taken": 3}, {"taken": 5})


async def test_notes_are_read_back(tmp_path: Path) -> None:
    await run(tmp_path, PAGES[:5], save_at=3, crash_at=4)
    stream = Embedded(tmp_path, SETTINGS, on_verdict=lambda value: None)
    async with stream:
        assert (stream.page_count, stream.progress.notes, stream.progress.clean) == (3, {"taken": 3}, False)


async def test_an_order_to_forget_applies_only_to_earlier_pages(tmp_path: Path) -> None:
    verdicts: list[Verdict] = []
    page = next(page for page in PAGES if page.html is not None)
    async with Embedded(tmp_path, SETTINGS, on_verdict=lambda value: verdicts.append(read_verdict(value))) as stream:
        await stream.feed([page, page])
        await stream.send_order(Forget(page.url))
        await stream.feed([page, page])
        await stream.finish()
    assert kinds(verdicts) == [Kind.UNIQUE, Kind.DUPLICATE, Kind.UNIQUE, Kind.DUPLICATE]


async def test_other_settings_than_those_of_the_state_are_refused(tmp_path: Path) -> None:
    await run(tmp_path, PAGES[:2])
    with pytest.raises(WrongState, match="use the settings that the state was made with"):
        await run(tmp_path, [], settings=replace(SETTINGS, hamming=2))


async def test_a_damaged_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    with pytest.raises(CorruptState, match="expected the progress of an embedded run"):
        await run(tmp_path, [])


async def test_an_error_of_a_stage_is_raised_and_everything_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, records: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("neardup.stream.shard.stage.Shard.process", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        async with asyncio.timeout(20):
            await run(tmp_path, PAGES[:3])
    assert len(asyncio.all_tasks()) == 1


async def test_a_stage_that_has_ended_with_an_error_is_not_taken_for_an_idle_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a save would mark pages as processed that have no verdict."""

    def broken(self: Any, records: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("neardup.stream.shard.stage.Shard.process", broken)
    async with Embedded(tmp_path, SETTINGS, on_verdict=lambda value: None) as stream:
        await stream.feed(PAGES[:3])
        await asyncio.wait(stream._running, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0.5)  # the other stages finish their work
        with pytest.raises(RuntimeError, match="a bug"):
            await stream.finish()
    assert json.loads((tmp_path / FILE).read_text())["pages"] == 0

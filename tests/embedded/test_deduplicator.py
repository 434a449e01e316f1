"""Tests of the main class of the library."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from neardup import Deduplicator, Kind, Page, Relation, Settings
from neardup.errors import InvalidPage, StateInUse, StateUnavailable, WrongState

TEXT = (
    "The river rises in the hills to the north of the old town and runs for ninety miles to the sea. In dry summers it "
    "is little more than a brook, but after the thaw it floods the meadows below the bridge, and nobody who has seen "
    "that would build a house there."
)
SETTINGS = Settings(tables=4, bands="4x8", processes=1)


def page(url: str, text: str = TEXT) -> Page:
    return Page(url, html=f"<p>{text}</p>".encode())


def test_a_page_is_compared_with_earlier_pages() -> None:
    with Deduplicator(settings=SETTINGS) as known:
        assert known.add(page("https://a.example/")).verdict is Kind.UNIQUE
        copy = known.add(page("https://b.example/"))
        near = known.add(page("https://a.example/2", TEXT.replace("ninety", "eighty")))
        other = known.add(page("https://c.example/", "Take flour, two eggs and a cup of milk, stir, and let it rest."))
        short = known.add(page("https://d.example/", "Not found"))
    assert (copy.verdict, copy.relation) == (Kind.DUPLICATE, Relation.IDENTICAL)
    assert copy.duplicate_of is not None
    assert copy.duplicate_of.url == "https://a.example/"
    assert (near.verdict, near.relation) == (Kind.DUPLICATE, Relation.NEAR)
    assert other.verdict is Kind.UNIQUE
    assert (short.verdict, short.reason) == (Kind.SKIPPED, "too short")


def test_verdicts_on_many_pages_are_in_order() -> None:
    with Deduplicator(settings=SETTINGS) as known:
        verdicts = known.add_all([page(f"https://{number}.example/") for number in range(50)])
    assert [verdict.url for verdict in verdicts] == [f"https://{number}.example/" for number in range(50)]
    assert [verdict.verdict for verdict in verdicts] == [Kind.UNIQUE] + [Kind.DUPLICATE] * 49


def test_pages_are_stored_in_the_state_directory(tmp_path: Path) -> None:
    with Deduplicator(tmp_path, SETTINGS) as known:
        known.add(page("https://a.example/"))
    with Deduplicator(tmp_path, SETTINGS) as known:
        assert known.add(page("https://b.example/")).verdict is Kind.DUPLICATE


def test_pages_are_not_compared_with_forgotten_and_expired_ones() -> None:
    with Deduplicator(settings=SETTINGS) as known:
        known.add(page("https://a.example/"))
        known.forget("https://a.example/")
        assert known.add(page("https://b.example/")).verdict is Kind.UNIQUE
        known.expire(before=2**50)
        assert known.add(page("https://c.example/")).verdict is Kind.UNIQUE


def test_a_page_over_a_limit_raises_and_the_next_one_is_processed() -> None:
    settings = Settings(tables=4, bands="4x8", processes=1, page_tokens=30, over_limit="reject")
    with Deduplicator(settings=settings) as known:
        with pytest.raises(InvalidPage, match=r"https://a\.example/"):
            known.add(page("https://a.example/"))
        assert (
            known.add(page("https://b.example/", "Take flour, two eggs and a cup of milk, then stir.")).verdict
            is Kind.UNIQUE
        )


def test_it_can_be_closed_twice() -> None:
    known = Deduplicator(settings=SETTINGS)
    known.close()
    known.close()


IN_ANOTHER_PROCESS = """
import sys
from neardup import Deduplicator, Settings
try:
    Deduplicator(sys.argv[1], Settings(tables=4, bands="4x8", processes=1)).close()
except Exception as error:
    print(type(error).__name__, error)
else:
    print("opened")
"""


def in_another_process(state: Path) -> str:
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(state)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.strip()


def test_a_second_user_of_a_state_directory_is_refused_and_the_first_is_not_disturbed(tmp_path: Path) -> None:
    with Deduplicator(tmp_path, SETTINGS) as known:
        known.add(page("https://a.example/"))
        with pytest.raises(StateInUse) as raised:
            Deduplicator(tmp_path, SETTINGS)
        refused = in_another_process(tmp_path)
        assert known.add(page("https://b.example/")).verdict is Kind.DUPLICATE
    assert str(raised.value).startswith(f"{tmp_path}: already in use by this process ({os.getpid()}): ")
    assert refused.startswith(f"StateInUse {tmp_path}: already in use by process {os.getpid()}: ")
    assert not any("delete" in message or "RocksDB" in message for message in (str(raised.value), refused))
    assert in_another_process(tmp_path) == "opened"
    with Deduplicator(tmp_path, SETTINGS) as known:
        assert known.add(page("https://c.example/")).verdict is Kind.DUPLICATE


def test_the_directory_of_a_killed_process_is_free(tmp_path: Path) -> None:
    code = IN_ANOTHER_PROCESS.replace(".close()", "; os.kill(os.getpid(), 9)").replace("import sys", "import os, sys")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=120, check=False)
    assert done.returncode == -9
    assert (tmp_path / "lock").read_text().strip().isdigit()
    Deduplicator(tmp_path, SETTINGS).close()


def test_a_directory_is_free_after_an_error_at_the_start(tmp_path: Path) -> None:
    Deduplicator(tmp_path, SETTINGS).close()
    with pytest.raises(WrongState):
        Deduplicator(tmp_path, replace(SETTINGS, hamming=2))
    Deduplicator(tmp_path, SETTINGS).close()


def test_a_directory_that_cannot_be_created_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StateUnavailable, match="expected a directory that can be written"):
        Deduplicator(tmp_path / "file" / "state", SETTINGS)

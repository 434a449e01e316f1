"""Tests of the main class of the library."""

from pathlib import Path

import pytest

from neardup import Deduplicator, Kind, Page, Relation, Settings
from neardup.errors import InvalidPage

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

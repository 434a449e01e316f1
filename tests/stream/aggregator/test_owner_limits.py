"""Tests of what an owner discards: variants and candidates over a limit, forgotten documents, expired documents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from neardup.index.plan.routing import owner_of
from neardup.matching.found_by import found_by_table
from neardup.messages.questions import Evidence, Question
from neardup.stream.aggregator.owner import FORGOTTEN
from neardup.types import BatchId, DocumentId, Kind, Relation
from tests.support.documents import document, shingles
from tests.support.owner_harness import Desk, desk, owned_by

UNIQUE, DUPLICATE = Kind.UNIQUE, Kind.DUPLICATE
SOME = shingles(1, 90)
ANOTHER_BATCH = BatchId(7, 7, 7)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Desk]:
    """Provide the only owner."""
    with desk(tmp_path) as opened:
        yield opened


def kept(opened: Desk, fingerprint: int = 0) -> list[int]:
    return sorted(known.document.id.offset for known in opened.owner.directory.variants(fingerprint))


# Limits


def test_the_earliest_variants_are_kept_up_to_the_limit(tmp_path: Path) -> None:
    with desk(tmp_path, most_variants=2) as opened:
        for offset in (4, 3, 2, 1):
            opened.take(document(offset, offset))
        assert kept(opened) == [1, 2]
        opened.verdicts()
        # The directory still has a dropped one, so it gets no second verdict.
        assert opened.take(document(4, 4)) == []


def test_variants_that_arrive_in_order_are_capped(tmp_path: Path) -> None:
    with desk(tmp_path, most_variants=2) as opened:
        for offset in range(20):
            opened.register(document(offset, offset))
            assert len(kept(opened)) <= 3
            opened.answer(document(offset, offset))
            assert len(kept(opened)) <= 2
        assert kept(opened) == [0, 1]
        assert opened.summaries() == [(offset, UNIQUE, 0, None) for offset in range(20)]
        assert [opened.take(document(offset, offset)) for offset in range(20)] == [[]] * 20


def test_variants_that_are_pending_together_are_capped_when_they_settle(tmp_path: Path) -> None:
    pages = [document(offset, offset) for offset in range(6)]
    with desk(tmp_path, most_variants=2) as opened:
        for each in pages:
            opened.register(each)
        for each in reversed(pages):
            opened.answer(each)
        assert kept(opened) == [0, 1]
        assert len(opened.summaries()) == 6


def test_a_copy_over_the_limit_is_removed_once_in_a_takeover(tmp_path: Path) -> None:
    with desk(tmp_path, most_variants=1) as opened:
        opened.register(document(2, SOME, tokens="t"))
        opened.register(document(1, SOME, tokens="t"))
        assert opened.summaries() == [(2, DUPLICATE, 0, 1)]
        assert kept(opened) == [1]


def test_a_variant_over_the_limit_is_kept_until_it_settles(tmp_path: Path) -> None:
    with desk(tmp_path, most_variants=1) as opened:
        last, first = document(2, 2), document(1, 1)
        opened.register(last)
        opened.register(first)
        assert kept(opened) == [1, 2]
        opened.answer(last)
        opened.answer(first)
        assert sorted(opened.summaries()) == [(1, UNIQUE, 0, None), (2, UNIQUE, 0, None)]


def test_only_the_nearest_candidates_are_examined(tmp_path: Path) -> None:
    mine = document(9, 1)
    far = next(1 << a | 1 << b for a in range(64) for b in range(a) if owner_of(1 << a | 1 << b, 2) == 1)
    near = owned_by(1, 2, count=3)
    with desk(tmp_path, owners=2, most_candidates=3) as opened:
        opened.take(mine, {far: 0} | dict.fromkeys(near, 0))
        [question] = opened.out.questions[1]
        assert sorted(question.candidates) == sorted(near)


def test_at_equal_distance_the_candidate_that_more_tables_found_is_examined(tmp_path: Path) -> None:
    mine = document(9, 1)
    one, other = owned_by(1, 2, count=2)
    with desk(tmp_path, owners=2, most_candidates=1) as opened:
        opened.register(mine)
        for table in (0, 1):
            opened.answer(mine, {other: table}, ANOTHER_BATCH)
        opened.answer(mine, {one: 2})
        [question] = opened.out.questions[1]
        assert question.candidates == {other: 0b11}


# Forgetting


def test_a_forgotten_page_no_longer_makes_others_duplicates(one: Desk) -> None:
    one.take(document(1, SOME, url="u", tokens="t"))
    one.owner.forget("u", one.out)
    assert kept(one) == []
    one.verdicts()
    assert one.take(document(2, SOME, url="v", tokens="t")) == [(2, UNIQUE, 0, None)]


def test_only_the_documents_of_the_url_are_forgotten(one: Desk) -> None:
    one.take(document(1, 1, url="u"))
    one.take(document(2, 2, url="v"))
    one.take(document(3, 3, url="u", fingerprint=5))
    one.owner.forget("u", one.out)
    assert (kept(one), kept(one, 5)) == ([2], [])
    assert one.out.forgotten.tolist() == [1, 0, 1, 3, 0, 3]
    one.owner.forget("nowhere", one.out)
    assert kept(one) == [2]


def test_a_forgotten_page_that_is_registered_again_stays_forgotten(one: Desk) -> None:
    page = document(1, SOME, url="u")
    one.take(page)
    one.owner.forget("u", one.out)
    one.verdicts()
    assert one.take(page) == []
    assert kept(one) == []
    assert len(one.owner.pending) == 0


def test_a_forgotten_copy_is_never_named_again(one: Desk) -> None:
    one.take(document(1, SOME, tokens="t"))
    one.take(document(2, SOME, tokens="t", content="c", url="u"))
    one.owner.forget("u", one.out)
    one.register(document(3, SOME, tokens="t", content="c"))
    verdict = one.verdicts()[-1]
    assert verdict.match is not None
    assert (verdict.match.relation, verdict.match.id.offset) == (Relation.SAME_TEXT, 1)
    assert list(one.owner.directory.documents_of_url("u")) == []


def test_a_forgotten_copy_gets_no_second_verdict(one: Desk) -> None:
    copy = document(2, SOME, tokens="t", url="u")
    one.take(document(1, SOME, tokens="t"))
    one.take(copy)
    one.owner.forget("u", one.out)
    assert one.take(copy) == []


def test_a_page_forgotten_while_it_waits_for_answers_is_skipped(one: Desk) -> None:
    page = document(1, SOME, url="u")
    one.register(page)
    one.owner.forget("u", one.out)
    [skipped] = one.out.skipped
    assert (skipped.id, skipped.url, skipped.reason) == (page.id, "u", FORGOTTEN)
    one.answer(page)
    assert one.summaries() == []
    assert len(one.owner.pending) == one.owner.pending.batches == 0


def test_a_page_forgotten_while_it_waits_for_evidence_is_skipped(tmp_path: Path) -> None:
    page = document(1, SOME, url="u")
    [candidate] = owned_by(1, 2)
    with desk(tmp_path, owners=2) as opened:
        opened.take(page, {candidate: 0})
        opened.owner.forget("u", opened.out)
        assert [each.reason for each in opened.out.skipped] == [FORGOTTEN]
        opened.owner.on_evidence(Evidence(page.id, page.fingerprint, (candidate,), None), opened.out)
        assert opened.summaries() == []
        assert len(opened.owner.pending) == 0


def test_a_settled_page_is_forgotten_without_a_verdict(one: Desk) -> None:
    one.take(document(1, SOME, url="u"))
    one.owner.forget("u", one.out)
    assert one.out.skipped == []


@pytest.mark.parametrize("forgotten", [True, False])
def test_a_question_about_an_unknown_fingerprint_is_answered_without_a_match(one: Desk, forgotten: bool) -> None:
    if forgotten:
        one.take(document(1, SOME, url="u"))
        one.owner.forget("u", one.out)
    asking = document(2, SOME, fingerprint=1)
    one.owner.on_question(Question(asking, {0: found_by_table(0)}), 3, one.out)
    assert one.out.evidence == {3: [Evidence(asking.id, 1, (0,), None)]}


def test_old_documents_expire_and_newer_ones_stay(one: Desk) -> None:
    one.take(document(1, 1, tokens="t", timestamp=100))
    one.register(document(2, 1, tokens="t", timestamp=150, content="c"))
    one.take(document(3, 3, timestamp=200))
    waits = document(4, 4, timestamp=199, url="w")
    one.register(waits)
    one.verdicts()
    one.owner.expire(200, one.out)
    assert kept(one) == [3]
    assert [(each.id, each.reason) for each in one.out.skipped] == [(waits.id, FORGOTTEN)]
    assert one.out.forgotten[::3].tolist() == [100, 150, 199]
    assert one.owner.directory.first_copy_with(document(2, 1, content="c").checksums.content) is None
    assert one.take(document(5, 1, tokens="t", content="c", timestamp=300)) == [(5, UNIQUE, 0, None)]
    # Documents expire by the time of the page, whatever its offset.
    assert one.owner.directory.has_marker(0, DocumentId(100, 0, 1))

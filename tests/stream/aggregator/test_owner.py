"""Tests of the rules of an owner, by example: the relation of two pages, and one verdict per document and revision."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from neardup.matching.found_by import found_by_table
from neardup.messages.questions import Evidence, Question
from neardup.signatures.bands import BandFilter
from neardup.types import BatchId, Document, Kind, Relation
from tests.support.documents import document, shingles
from tests.support.owner_harness import Desk, desk, owned_by

UNIQUE, DUPLICATE = Kind.UNIQUE, Kind.DUPLICATE
SOME = shingles(1, 90)
Pair = Callable[[], tuple[Document, Document]]

PAIRS: dict[Relation, Pair] = {
    Relation.IDENTICAL: lambda: (
        document(1, SOME, content="c", tokens="t"),
        document(2, SOME, content="c", tokens="t"),
    ),
    Relation.SAME_TEXT: lambda: (document(1, SOME, tokens="t"), document(2, SOME, tokens="t")),
    Relation.SAME_SHINGLES: lambda: (document(1, SOME), document(2, SOME, fingerprint=1)),
    Relation.NEAR: lambda: (document(1, SOME), document(2, SOME[:85], fingerprint=0b111)),
    Relation.CONTAINED: lambda: (document(1, SOME), document(2, SOME[:30], fingerprint=0b11)),
}


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Desk]:
    """Provide the only owner."""
    with desk(tmp_path) as opened:
        yield opened


# Relations of two pages


@pytest.mark.parametrize("relation", PAIRS)
def test_a_page_that_arrives_after_its_original_is_a_duplicate(one: Desk, relation: Relation) -> None:
    first, second = PAIRS[relation]()
    assert one.take(first) == [(1, UNIQUE, 0, None)]
    one.register(second)
    one.answer(second, {first.fingerprint: 4} if first.fingerprint != second.fingerprint else None)
    [verdict] = one.verdicts()
    assert (verdict.document.id, verdict.kind, verdict.revision) == (second.id, DUPLICATE, 0)
    assert verdict.match is not None
    assert (verdict.match.id, verdict.match.relation, verdict.match.group) == (first.id, relation, first.id)
    assert verdict.match.found_by == (1 << 4 if first.fingerprint != second.fingerprint else 0)
    assert verdict.match.hamming == (first.fingerprint ^ second.fingerprint).bit_count()


@pytest.mark.parametrize("relation", PAIRS)
def test_a_page_that_arrives_before_its_original_is_revised_once(one: Desk, relation: Relation) -> None:
    first, second = PAIRS[relation]()
    near = {second.fingerprint: 4} if first.fingerprint != second.fingerprint else None
    assert one.take(second) == [(2, UNIQUE, 0, None)]
    one.register(first)
    one.answer(first, near)
    verdicts = one.verdicts()
    assert [
        (each.document.id.offset, each.kind, each.revision) for each in sorted(verdicts, key=lambda t: t.document.id)
    ] == [
        (1, UNIQUE, 0),
        (2, DUPLICATE, 1),
    ]
    [revised] = [each for each in verdicts if each.revision]
    assert revised.match is not None
    assert (revised.match.id, revised.match.relation) == (first.id, relation)
    assert one.take(first, near) == one.take(second) == []


def test_a_longer_page_is_not_a_duplicate_of_an_earlier_part_of_it(one: Desk) -> None:
    part, whole = document(1, SOME[:30]), document(2, SOME, fingerprint=1)
    one.take(part)
    assert one.take(whole, {0: 0}) == [(2, UNIQUE, 0, None)]


def test_unlike_pages_with_the_same_fingerprint_are_both_unique(one: Desk) -> None:
    assert one.take(document(1, 1)) == [(1, UNIQUE, 0, None)]
    assert one.take(document(2, 2)) == [(2, UNIQUE, 0, None)]


def test_the_strongest_relation_wins_and_then_the_earliest_page(one: Desk) -> None:
    one.take(document(1, SOME[:85], fingerprint=0b1))
    one.take(document(2, SOME, fingerprint=0b10))
    one.take(document(3, SOME, fingerprint=0b100))
    last = document(9, SOME, fingerprint=0)
    one.verdicts()
    assert one.take(last, {0b1: 0, 0b10: 0, 0b100: 0}) == [(9, DUPLICATE, 0, 2)]


def test_a_duplicate_of_a_duplicate_names_the_first_of_the_group(one: Desk) -> None:
    one.take(document(1, SOME))
    one.take(document(2, SOME[:85], fingerprint=0b111), {0: 0})
    one.take(document(3, SOME[:80], fingerprint=0b111111), {0b111: 0})
    third = one.out.verdicts[-1]
    assert third.match is not None
    assert (third.match.id.offset, third.match.group.offset) == (2, 1)


@pytest.mark.parametrize(
    ("bands", "kind"), [(BandFilter(16, 8), DUPLICATE), (BandFilter(1, 128), UNIQUE), (None, UNIQUE)], ids=str
)
def test_a_candidate_of_a_bucket_is_compared_only_if_the_documents_share_a_band(
    tmp_path: Path, bands: BandFilter | None, kind: Kind
) -> None:
    # Too far apart for the permuted tables: only a band can find this pair. A bucket contains fingerprints, and the
    # document in the bucket may be another one with the same fingerprint.
    with desk(tmp_path, bands=bands) as opened:
        opened.take(document(1, SOME))
        [(_, found, _, _)] = opened.take(document(2, SOME[:88], fingerprint=0b11111), {0: 10})
        assert found is kind


def test_a_duplicate_keeps_its_first_verdict(one: Desk) -> None:
    one.take(document(2, SOME[:85], fingerprint=0b10))
    duplicate = document(3, SOME, fingerprint=0)
    assert one.take(duplicate, {0b10: 0})[-1] == (3, DUPLICATE, 0, 2)
    assert (3, DUPLICATE, 1, 1) not in one.take(document(1, SOME, fingerprint=0b1), {0: 0, 0b10: 0})
    known = one.owner.directory.find(0, duplicate.id)
    assert known is not None
    assert known.match is not None
    assert (known.revision, known.match.id.offset) == (0, 2)


# Copies


def test_a_copy_names_the_first_page_with_the_same_bytes(one: Desk) -> None:
    one.take(document(1, SOME, tokens="t"))
    one.take(document(2, SOME, tokens="t", content="c"))
    one.register(document(3, SOME, tokens="t", content="c"))
    verdict = one.verdicts()[-1]
    assert verdict.match is not None
    assert (verdict.match.relation, verdict.match.id.offset, verdict.match.group.offset) == (Relation.IDENTICAL, 2, 1)


def test_a_copy_never_names_a_later_page_with_the_same_bytes(one: Desk) -> None:
    one.take(document(1, SOME, tokens="t"))
    for offset in (5, 3, 6):
        one.register(document(offset, SOME, tokens="t", content="c"))
    assert one.summaries() == [(5, DUPLICATE, 0, 1), (3, DUPLICATE, 0, 1), (6, DUPLICATE, 0, 3)]


def test_a_copy_settles_immediately_and_gets_one_verdict(one: Desk) -> None:
    first, copy = PAIRS[Relation.IDENTICAL]()
    one.take(first)
    one.register(copy)
    assert one.summaries() == [(2, DUPLICATE, 0, 1)]
    assert len(one.owner.pending) == 0
    one.register(copy, BatchId(0, 0, 9))
    assert one.take(copy) == []


def test_an_earlier_copy_that_arrives_late_takes_over_and_the_former_first_is_revised_once(one: Desk) -> None:
    first, second, third = (document(offset, SOME, content="c", tokens="t") for offset in (1, 2, 3))
    assert one.take(third) == [(3, UNIQUE, 0, None)]
    assert sorted(one.take(second)) == [(2, UNIQUE, 0, None), (3, DUPLICATE, 1, 2)]
    assert sorted(one.take(first)) == [(1, UNIQUE, 0, None), (2, DUPLICATE, 1, 1)]
    assert [known.document.id for known in one.owner.directory.variants(0)] == [first.id]
    for each in (first, second, third):
        assert one.take(each) == []


def test_after_a_takeover_a_page_with_the_bytes_of_the_former_first_is_identical_to_it(one: Desk) -> None:
    one.take(document(3, SOME, tokens="t", content="c"))
    one.take(document(1, SOME, tokens="t"))
    one.verdicts()
    one.register(document(5, SOME, tokens="t", content="c"))
    [verdict] = one.verdicts()
    assert verdict.match is not None
    assert (verdict.match.relation, verdict.match.id.offset, verdict.match.group.offset) == (Relation.IDENTICAL, 3, 1)
    # The second page is earlier than the former first one, so it is now the first with these bytes.
    for offset in (2, 6):
        one.register(document(offset, SOME, tokens="t", content="c"))
    assert one.summaries() == [(2, DUPLICATE, 0, 1), (6, DUPLICATE, 0, 2)]


def test_after_a_takeover_by_a_page_with_the_same_bytes_copies_name_the_new_first(one: Desk) -> None:
    for offset in (3, 1):
        one.take(document(offset, SOME, tokens="t", content="c"))
    one.verdicts()
    assert one.take(document(5, SOME, tokens="t", content="c")) == [(5, DUPLICATE, 0, 1)]


def test_a_pending_page_is_settled_by_an_earlier_copy(one: Desk) -> None:
    first, second = PAIRS[Relation.SAME_TEXT]()
    one.register(second)
    one.register(first)
    assert one.summaries() == [(2, DUPLICATE, 0, 1)]
    one.answer(second)
    assert one.summaries() == []
    one.answer(first)
    assert one.summaries() == [(1, UNIQUE, 0, None)]


def test_every_page_is_archived_once(one: Desk) -> None:
    first, second, third = (document(offset, SOME, tokens="t") for offset in (1, 2, 3))
    for each in (second, third, first, second):
        one.take(each)
    assert sorted(each.document.id.offset for each in one.out.settled) == [1, 2, 3]


# Between owners


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Desk, Desk]]:
    """Provide owners 0 and 1 of two."""
    with desk(tmp_path / "0", number=0, owners=2) as one, desk(tmp_path / "1", number=1, owners=2) as other:
        yield one, other


def questions_of(asker: Desk) -> list[Question]:
    return [question for some in asker.out.questions.values() for question in some]


def mine_and_other(later: int = 2, earlier: int = 1) -> tuple[Document, Document]:
    """Return a page of owner 0, and a similar page of owner 1."""
    [other] = owned_by(1, 2)
    return document(later, SOME, fingerprint=0), document(earlier, SOME, fingerprint=other)


def test_a_page_is_settled_when_the_owner_of_its_candidate_has_sent_evidence(two: tuple[Desk, Desk]) -> None:
    (asker, asked), (mine, other) = two, mine_and_other()
    asked.take(other)
    assert asker.take(mine, {other.fingerprint: 3}) == []
    [question] = questions_of(asker)
    assert (question.document.id, question.candidates) == (mine.id, {other.fingerprint: 1 << 3})
    asked.owner.on_question(question, 0, asked.out)
    [evidence] = asked.out.evidence[0]
    asker.owner.on_evidence(evidence, asker.out)
    [verdict] = asker.verdicts()
    assert verdict.match is not None
    assert (verdict.kind, verdict.match.id, verdict.match.found_by) == (DUPLICATE, other.id, 1 << 3)
    for _ in range(2):
        asker.owner.on_evidence(evidence, asker.out)
        assert asker.summaries() == []


def test_the_owner_that_receives_a_question_revises_its_own_later_page(two: tuple[Desk, Desk]) -> None:
    (asker, asked), (mine, other) = two, mine_and_other(later=1, earlier=2)
    asked.take(other)
    asked.verdicts()
    asker.take(mine, {other.fingerprint: 3})
    for _ in range(2):
        asked.owner.on_question(questions_of(asker)[0], 0, asked.out)
    assert asked.summaries() == [(2, DUPLICATE, 1, 1)]
    assert [evidence.match for evidence in asked.out.evidence[0]] == [None, None]
    asker.owner.on_evidence(asked.out.evidence[0][0], asker.out)
    assert asker.summaries() == [(1, UNIQUE, 0, None)]


def test_evidence_about_several_candidates_contains_the_best_match(two: tuple[Desk, Desk]) -> None:
    _, asked = two
    first, second, third, none = owned_by(1, 2, count=4)
    asked.take(document(3, SOME, fingerprint=third))
    asked.take(document(1, SOME, fingerprint=first))
    asked.take(document(2, SOME, fingerprint=second))
    mine = document(9, SOME, fingerprint=0)
    near = dict.fromkeys([third, first, none, second], found_by_table(1))
    asked.owner.on_question(Question(mine, near), 0, asked.out)
    [evidence] = asked.out.evidence[0]
    assert (evidence.document, evidence.fingerprint, evidence.candidates) == (mine.id, 0, tuple(near))
    assert evidence.match is not None
    assert evidence.match.id.offset == 1


def test_evidence_before_the_last_answer_is_kept_and_later_evidence_revises(two: tuple[Desk, Desk]) -> None:
    (asker, asked), (mine, other) = two, mine_and_other()
    asked.take(other)
    asked.owner.on_question(Question(mine, {other.fingerprint: found_by_table(0)}), 0, asked.out)
    [evidence] = asked.out.evidence[0]
    asker.register(mine)
    asker.owner.on_evidence(evidence, asker.out)
    assert asker.summaries() == []
    asker.answer(mine)
    assert asker.summaries() == [(2, DUPLICATE, 0, 1)]


def test_evidence_after_settling_revises(two: tuple[Desk, Desk]) -> None:
    (asker, asked), (mine, other) = two, mine_and_other()
    asker.take(mine)
    assert asker.out.verdicts[-1].kind is UNIQUE
    asker.verdicts()
    asked.take(other)
    asked.owner.on_question(Question(mine, {other.fingerprint: found_by_table(0)}), 0, asked.out)
    for _ in range(2):
        asker.owner.on_evidence(asked.out.evidence[0][0], asker.out)
    assert asker.summaries() == [(2, DUPLICATE, 1, 1)]


def test_a_page_waits_for_the_evidence_of_every_candidate(two: tuple[Desk, Desk]) -> None:
    asker, _ = two
    candidates = owned_by(1, 2, count=3)
    mine = document(9, 1)
    asker.take(mine, dict.fromkeys(candidates, 0))
    for candidate in candidates:
        assert asker.summaries() == []
        asker.owner.on_evidence(Evidence(mine.id, mine.fingerprint, (candidate,), None), asker.out)
    assert asker.summaries() == [(9, UNIQUE, 0, None)]


def test_evidence_for_an_unknown_page_is_ignored(two: tuple[Desk, Desk]) -> None:
    asker, _ = two
    asker.owner.on_evidence(Evidence(document(1, 1).id, 0, (7,), None), asker.out)
    assert asker.summaries() == []


def test_pending_and_settled_documents_survive_a_restart(tmp_path: Path) -> None:
    mine = document(9, 1)
    [candidate] = owned_by(1, 2)
    with desk(tmp_path, owners=2) as opened:
        opened.take(mine, {candidate: 0})
        opened.owner.directory.flush()
        opened.owner.pending.flush()
        opened.owner.directory._store.save(1)
    with desk(tmp_path, owners=2) as opened:
        opened.register(replace(mine))
        opened.owner.on_evidence(Evidence(mine.id, mine.fingerprint, (candidate,), None), opened.out)
        assert opened.summaries() == [(9, UNIQUE, 0, None)]

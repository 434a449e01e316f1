"""Tests of the decision rule, line by line, and of the match of two documents."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.matching.found_by import NO_TABLE, FoundBy
from neardup.matching.match import RELATIONS, Match, better, can_better, match
from neardup.matching.rule import Thresholds, decide
from neardup.settings import Settings
from neardup.signatures.packed_sketch import compare
from neardup.types import DocumentId, Relation
from tests.support.documents import document, matches, shingles

DEFAULT = Thresholds()
BELOW = 0.6499999


@pytest.mark.parametrize(
    ("same", "resemblance", "containment", "relation"),
    [
        (Relation.IDENTICAL, 0.0, None, Relation.IDENTICAL),
        (Relation.SAME_TEXT, 0.0, 0.0, Relation.SAME_TEXT),
        (Relation.SAME_SHINGLES, 0.0, None, Relation.SAME_SHINGLES),
        (Relation.SAME_SHINGLES, 1.0, 1.0, Relation.SAME_SHINGLES),
        (None, 1.0, None, Relation.NEAR),
        (None, 0.65, 0.0, Relation.NEAR),
        (None, 0.65, 1.0, Relation.NEAR),
        (None, BELOW, 1.0, Relation.CONTAINED),
        (None, BELOW, 0.95, Relation.CONTAINED),
        (None, 0.0, 0.95, Relation.CONTAINED),
        (None, BELOW, 0.9499999, None),
        (None, BELOW, None, None),
        (None, 0.0, 0.0, None),
    ],
)
def test_the_first_rule_that_applies_decides(
    same: Relation | None, resemblance: float, containment: float | None, relation: Relation | None
) -> None:
    assert decide(same, resemblance, containment, DEFAULT) is relation


def test_the_thresholds_are_those_of_the_settings() -> None:
    assert Thresholds.of(Settings()) == DEFAULT == Thresholds(0.65, 0.95)
    own = Thresholds.of(Settings(near_resemblance=0.5, contained=0.75))
    assert own == Thresholds(0.5, 0.75)
    assert decide(None, 0.5, None, own) is Relation.NEAR
    assert decide(None, 0.4, 0.75, own) is Relation.CONTAINED


# Matches


def test_a_match_has_distance_resemblance_and_containment() -> None:
    some = shingles(1, 100)
    earlier, later = document(1, some[:90], fingerprint=0b1011), document(2, some, fingerprint=0b0110)
    likeness = compare(later.sketch, earlier.sketch)
    assert likeness.a_in_b is not None
    assert match(later, earlier, DEFAULT, found_by=FoundBy(5)) == Match(
        id=earlier.id,
        url=earlier.url,
        relation=Relation.NEAR,
        hamming=3,
        resemblance=round(likeness.resemblance, 4),
        containment=round(likeness.a_in_b, 4),
        found_by=FoundBy(5),
        group=earlier.id,
        group_url=earlier.url,
    )


def test_containment_counts_in_only_one_direction() -> None:
    some = shingles(1, 90)
    whole, part = document(1, some), document(2, some[:30])
    found = match(part, whole, DEFAULT)
    assert found is not None
    assert found.relation is Relation.CONTAINED
    assert found.containment == 1.0
    longer = document(3, some)
    assert match(longer, part, DEFAULT) is None


@pytest.mark.parametrize(
    ("level", "relation"),
    [("content", Relation.IDENTICAL), ("tokens", Relation.SAME_TEXT), ("shingles", Relation.SAME_SHINGLES)],
)
def test_equal_checksums_need_no_sketch(level: str, relation: Relation) -> None:
    one = document(1, 7, content="c" if level == "content" else None, tokens="t" if level == "tokens" else None)
    other = document(
        2, 7 if level == "shingles" else 8,
        content="c" if level == "content" else None, tokens="t" if level == "tokens" else None,
    )  # fmt: skip
    found = match(other, one, DEFAULT)
    assert found is not None
    assert (found.relation, found.resemblance, found.containment) == (relation, 1.0, 1.0)


def test_a_match_with_a_duplicate_names_the_first_of_its_group() -> None:
    first, second, third = (document(offset, 7) for offset in (1, 2, 3))
    group = match(second, first, DEFAULT)
    found = match(third, second, DEFAULT, group=group)
    assert found is not None
    assert (found.id, found.group, found.group_url) == (second.id, first.id, first.url)


def test_a_later_document_is_never_a_match() -> None:
    with pytest.raises(AssertionError):
        match(document(1, 7), document(2, 7), DEFAULT)


@pytest.mark.parametrize("known", [None, *range(6)])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("earlier", range(1, 5))
def test_a_comparison_is_skipped_only_if_it_cannot_give_a_better_match(
    known: int | None, relation: Relation, earlier: int
) -> None:
    some = shingles(1, 90)
    others = {
        1: document(1, some, content="c"),
        2: document(2, some, tokens="t"),
        3: document(3, some),
        4: document(4, shingles(1, 80)),
    }
    later, other = document(9, some, content="c", tokens="t"), others[earlier]
    found = match(later, other, DEFAULT)
    assert found is not None
    assert found.relation is RELATIONS[earlier - 1]
    best = None if known is None else replace(found, id=DocumentId(0, 0, known), relation=relation)
    # The sketches of these two are at least as alike as the upper bound, so the answer is exact.
    is_better = better(best, found) is found and (best is None or best.rank != found.rank)
    assert can_better(best, later, other) == is_better


@given(st.lists(st.none() | matches, min_size=1))
def test_the_stronger_match_is_better_and_then_the_earlier_in_any_order(some: list[Match | None]) -> None:
    best = some[0]
    for each in some[1:]:
        best = better(best, each)
    backwards = None
    for each in reversed(some):
        backwards = better(backwards, each)
    there = [each for each in some if each is not None]
    if not there:
        assert best is backwards is None
        return
    assert best is not None
    assert backwards is not None
    assert best.rank == backwards.rank == min((RELATIONS.index(each.relation), each.id) for each in there)


def test_relations_have_the_ranks_of_the_table() -> None:
    later, earlier = DocumentId(2, 0, 0), DocumentId(1, 0, 0)
    ranks = [
        Match(
            id=later,
            url="",
            relation=relation,
            hamming=0,
            resemblance=1,
            containment=1,
            found_by=NO_TABLE,
            group=later,
            group_url="",
        ).rank
        for relation in Relation
    ]
    assert all(one < other for one, other in pairwise(ranks))
    assert (
        Match(
            id=earlier,
            url="",
            relation=Relation.NEAR,
            hamming=0,
            resemblance=1,
            containment=1,
            found_by=NO_TABLE,
            group=later,
            group_url="",
        ).rank
        < ranks[RELATIONS.index(Relation.NEAR)]
    )

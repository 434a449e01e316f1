"""Tests of copies and edges: the pairs to compare, and the pairs that meet the thresholds."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from neardup.matching.rule import Thresholds
from neardup.offline.clusters import edges
from neardup.offline.clusters.copies import find_copies, levels
from neardup.offline.clusters.edges import find_edges
from neardup.signatures.packed_sketch import compare
from neardup.types import Relation
from tests.offline.made_runs import gathered, match_of, options, pairs_of, settled
from tests.support.documents import document, shingles


def test_the_first_copy_with_a_sketch_is_kept_on_any_level(tmp_path: Path) -> None:
    some = [
        document(9, 1),  # the same shingles as 0:4
        document(4, 1, tokens="t"),
        document(3, 2, tokens="t"),  # without sketch
        document(5, 3, content="c"),
        document(6, 4, content="c"),  # the same bytes, decoded differently
        document(7, 5),
    ]
    documents = gathered(tmp_path, settled(some, {3: match_of(some[1], Relation.SAME_TEXT)}))
    copies = find_copies(documents)
    assert copies.kept.tolist() == [1, 1, 1, 3, 3, 5]
    assert copies.comparable.tolist() == [False, True, False, True, False, True]
    a, b = np.array([0, 1, 3, 0, 5]), np.array([1, 2, 4, 2, 5])
    assert levels(documents.checksums[a], documents.checksums[b]).tolist() == [2, 1, 0, 3, 0]


def test_copies_without_any_sketch_keep_their_first_and_are_not_compared(tmp_path: Path) -> None:
    absent = document(0, 1, tokens="t")
    some = [document(2, 1, tokens="t"), document(1, 1, tokens="t")]
    same = match_of(absent, Relation.SAME_TEXT)
    copies = find_copies(gathered(tmp_path, settled(some, {1: same, 2: same})))
    assert copies.kept.tolist() == [1, 1]
    assert not copies.comparable.any()


def window(start: int, end: int) -> NDArray[np.uint64]:
    return shingles(1, 1000)[start:end]


WINDOWS = [(0, 200), (20, 220), (0, 900), (100, 300), (500, 700), (150, 160), (10, 190), (500, 680)]
THRESHOLDS = Thresholds(0.6, 0.85)


@pytest.mark.parametrize("piece", [1, 3, 1 << 18])
def test_edges_are_the_pairs_that_meet_the_thresholds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(edges, "PIECE", piece)
    documents = gathered(tmp_path, settled([document(n, window(*each)) for n, each in enumerate(WINDOWS)]))
    every = [(a, b) for a in range(len(WINDOWS)) for b in range(a + 1, len(WINDOWS))]
    some, others, spots = every[::2], every[1::3], every[::5]
    sources = [
        ("shingles", pairs_of(some)),
        ("hamming", pairs_of(others)),
        ("spots", pairs_of(spots, lambda a, b: 0.5)),
    ]
    steps: list[tuple[int, int]] = []
    found, contained = find_edges(
        documents, sources, options(thresholds=THRESHOLDS, spot_resemblance=0.5), lambda *step: steps.append(step)
    )
    expected, held = [], []
    for a, b in every:
        mask = ((a, b) in some) | ((a, b) in others) << 1 | ((a, b) in spots) << 2
        likeness = compare(documents.sketch(a), documents.sketch(b))
        if mask and (likeness.resemblance >= THRESHOLDS.resemblance or (a, b) in spots):
            expected.append((a, b, np.float32(likeness.resemblance), mask))
        elif mask:
            held += [(a, b)] if (likeness.a_in_b or 0) >= THRESHOLDS.containment else []
            held += [(b, a)] if (likeness.b_in_a or 0) >= THRESHOLDS.containment else []
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected
    assert list(zip(contained.inner.tolist(), contained.outer.tolist(), strict=True)) == sorted(held)
    assert expected
    assert held
    count = len(some) + len(others) + len(spots)
    assert steps[-1] == (count, count)


def test_spots_below_the_threshold_make_no_edge(tmp_path: Path) -> None:
    documents = gathered(tmp_path, settled([document(0, 0), document(1, 1)]))
    found, _ = find_edges(documents, [("spots", pairs_of([(0, 1)], lambda a, b: 0.3))], options())
    assert found.a.size == 0


def test_without_pairs_there_are_no_edges(tmp_path: Path) -> None:
    documents = gathered(tmp_path, settled([document(0, 0)]))
    found, contained = find_edges(documents, [("shingles", pairs_of([]))], options())
    assert (found.a.size, contained.inner.size) == (0, 0)

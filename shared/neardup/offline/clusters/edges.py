"""Edges: pairs whose sketches resemble each other, and documents that are contained in others.

The pairs of all sources are merged and compared in pieces, which bounds the memory and uses all cores.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.offline.postings import merge_counted
from neardup.kernels.offline.verifying import likenesses
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.options import Options
from neardup.offline.pairs.pair_source import Pairs
from neardup.offline.pairs.postings import merge_pairwise
from neardup.signatures.packed_sketch import LEAST_SAMPLED
from neardup.util.parallel import CORES, in_order

PIECE: Final = 1 << 15
"""Approximate number of pairs per source that are compared at once."""
SPOTS: Final = "spots"
"""Name of the source whose score alone can make an edge: the resemblance of spot signatures."""


class Edges(NamedTuple):
    """Rows that resemble each other, with `a` < `b`. Bit i of `sources` is set if source i found the pair."""

    a: NDArray[np.uint32]
    b: NDArray[np.uint32]
    resemblance: NDArray[np.float32]
    sources: NDArray[np.uint8]


class Contained(NamedTuple):
    """Contained documents and the documents that contain them."""

    inner: NDArray[np.uint32]
    outer: NDArray[np.uint32]
    containment: NDArray[np.float32]


def find_edges(
    documents: ColumnStore,
    sources: Sequence[tuple[str, Pairs]],
    options: Options,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> tuple[Edges, Contained]:
    """Compare the pairs of the named sources. Both results are sorted.

    `progress` receives the number of pairs done and the number of all pairs.
    """
    done, total = 0, sum(pairs.a.size for _, pairs in sources)
    edges, contained = [], []
    with ThreadPoolExecutor(CORES) as pool:
        for piece in in_order(pool, lambda some: _verify(documents, some, options), _pieces(sources)):
            edges.append(piece.edges)
            contained.append(piece.contained)
            done += piece.pairs
            progress(done, total)
    return _edges(edges), _contained(contained)


_Sources = Sequence[tuple[str, Pairs]]


def _pieces(sources: _Sources) -> Iterator[_Sources]:
    """Split the pairs into pieces, in order. All pairs of a row `a` are in one piece."""
    firsts = np.unique(np.concatenate([pairs.a[::PIECE] for _, pairs in sources]))
    cuts = [np.append(np.searchsorted(pairs.a, firsts), pairs.a.size) for _, pairs in sources]
    for number in range(firsts.size):
        slices = [slice(cut[number], cut[number + 1]) for cut in cuts]
        yield [
            (name, Pairs(pairs.a[rows], pairs.b[rows], pairs.score[rows]))
            for rows, (name, pairs) in zip(slices, sources, strict=True)
        ]


class _Verified(NamedTuple):
    """Result of comparing a piece, and the number of its pairs over all sources, including repeats."""

    edges: Edges
    contained: Contained
    pairs: int


def _verify(documents: ColumnStore, sources: _Sources, options: Options) -> _Verified:
    keys = [pairs.a.astype(np.uint64) << np.uint64(32) | pairs.b for _, pairs in sources]
    marked = [(own, np.full(own.size, 1 << number, np.uint32)) for number, own in enumerate(keys)]
    # Each source has a pair once, so the sum of the marks is a bit set.
    found, marks = merge_pairwise(marked, lambda one, other: merge_counted(*one, *other))
    a, b = (found >> np.uint64(32)).astype(np.uint32), found.astype(np.uint32)
    threshold = options.thresholds.resemblance
    likeness = likenesses(a, b, documents.words, documents.starts, LEAST_SAMPLED, threshold)
    near = likeness[:, 0] >= threshold
    for (name, pairs), own in zip(sources, keys, strict=True):
        if name == SPOTS:
            near[np.searchsorted(found, own[pairs.score >= np.float32(options.spot_resemblance)])] = True
    edges = Edges(a[near], b[near], likeness[near, 0].astype(np.float32), marks[near].astype(np.uint8))
    in_b, in_a = (~near & (share >= options.thresholds.containment) & (share >= 0) for share in likeness.T[1:])
    inner, outer = np.concatenate([a[in_b], b[in_a]]), np.concatenate([b[in_b], a[in_a]])
    containment = np.concatenate([likeness[in_b, 1], likeness[in_a, 2]]).astype(np.float32)
    return _Verified(edges, Contained(inner, outer, containment), sum(own.size for own in keys))


def _edges(parts: list[Edges]) -> Edges:
    columns = zip(NO_EDGES, *parts, strict=True)
    return Edges(*(np.concatenate(column) for column in columns))


def _contained(parts: list[Contained]) -> Contained:
    columns = zip(NONE_CONTAINED, *parts, strict=True)
    inner, outer, containment = (np.concatenate(column) for column in columns)
    order = np.lexsort((outer, inner))
    return Contained(inner[order], outer[order], containment[order])


NO_EDGES: Final = Edges(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.float32), np.empty(0, np.uint8))
NONE_CONTAINED: Final = Contained(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.float32))

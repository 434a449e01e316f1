"""Edges: pairs that hold when their sketches are compared, and documents that are contained in others.

Pairs of all sources are united piece by piece, so that memory is bounded whatever their number, and the pieces are
compared by all cores.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.verifying import likenesses
from neardup.offline.gathered import Gathered
from neardup.offline.options import Options
from neardup.offline.pairs import Pairs
from neardup.packed_sketch import LEAST_SAMPLED

PIECE: Final = 1 << 15
"""Pairs of a source that are compared at once, about."""
SPOTS: Final = "spots"
"""The source whose score decides by itself: the resemblance of spot signatures."""


class Edges(NamedTuple):
    """Rows that resemble each other, `a` before `b` in number; bit i of `sources`: source i brought them together."""

    a: NDArray[np.uint32]
    b: NDArray[np.uint32]
    resemblance: NDArray[np.float32]
    sources: NDArray[np.uint8]


class Contained(NamedTuple):
    """Documents and those that hold them."""

    inner: NDArray[np.uint32]
    outer: NDArray[np.uint32]
    containment: NDArray[np.float32]


def find_edges(
    documents: Gathered,
    sources: Sequence[tuple[str, Pairs]],
    options: Options,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> tuple[Edges, Contained]:
    """Compare the pairs that each source, with its name, has brought. Both results are sorted.

    `progress`: pairs done, of all.
    """
    verified = list(_in_parallel(lambda piece: _verify(documents, piece, options), _pieces(sources), sources, progress))
    return _edges([edges for edges, _ in verified]), _contained([contained for _, contained in verified])


class _Piece(NamedTuple):
    """The pairs of some rows, from all sources, which brought so many with repeats.

    `spots`: the score of that source, 0 where a pair is not from there.
    """

    a: NDArray[np.uint32]
    b: NDArray[np.uint32]
    sources: NDArray[np.uint8]
    spots: NDArray[np.float32]
    brought: int


def _pieces(sources: Sequence[tuple[str, Pairs]]) -> Iterator[_Piece]:
    """All pairs in order, each once. A row's pairs are never cut apart."""
    firsts = np.unique(np.concatenate([pairs.a[::PIECE] for _, pairs in sources]))
    cuts = [np.append(np.searchsorted(pairs.a, firsts), pairs.a.size) for _, pairs in sources]
    for number in range(firsts.size):
        slices = [slice(cut[number], cut[number + 1]) for cut in cuts]
        yield _united(
            [
                (name, Pairs(pairs.a[rows], pairs.b[rows], pairs.score[rows]))
                for rows, (name, pairs) in zip(slices, sources, strict=True)
            ]
        )


def _united(sources: Sequence[tuple[str, Pairs]]) -> _Piece:
    keys = [pairs.a.astype(np.uint64) << np.uint64(32) | pairs.b for _, pairs in sources]
    found = np.unique(np.concatenate(keys))
    mask = np.zeros(found.size, np.uint8)
    spots = np.zeros(found.size, np.float32)
    for number, ((name, pairs), own) in enumerate(zip(sources, keys, strict=True)):
        places = np.searchsorted(found, own)
        mask[places] |= np.uint8(1 << number)
        if name == SPOTS:
            spots[places] = pairs.score
    a, b = (found >> np.uint64(32)).astype(np.uint32), found.astype(np.uint32)
    return _Piece(a, b, mask, spots, sum(own.size for own in keys))


def _verify(documents: Gathered, piece: _Piece, options: Options) -> tuple[Edges, Contained]:
    a, b = piece.a, piece.b
    found = likenesses(a, b, documents.words, documents.starts, LEAST_SAMPLED)
    resemblance = found[:, 0]
    near = resemblance >= options.thresholds.resemblance
    near |= (piece.spots > 0) & (piece.spots >= np.float32(options.spot_resemblance))
    edges = Edges(a[near], b[near], resemblance[near].astype(np.float32), piece.sources[near])
    in_b, in_a = (~near & (share >= options.thresholds.containment) & (share >= 0) for share in found.T[1:])
    inner, outer = np.concatenate([a[in_b], b[in_a]]), np.concatenate([b[in_b], a[in_a]])
    containment = np.concatenate([found[in_b, 1], found[in_a, 2]]).astype(np.float32)
    return edges, Contained(inner, outer, containment)


def _in_parallel(
    verify: Callable[[_Piece], tuple[Edges, Contained]],
    pieces: Iterator[_Piece],
    sources: Sequence[tuple[str, Pairs]],
    progress: Callable[[int, int], None],
) -> Iterator[tuple[Edges, Contained]]:
    """Results in the order of the pieces, of which only a few are in memory at a time."""
    threads = os.cpu_count() or 1
    done, total = 0, sum(pairs.a.size for _, pairs in sources)
    waiting: deque[tuple[int, Future[tuple[Edges, Contained]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for piece in pieces:
            waiting.append((piece.brought, pool.submit(verify, piece)))
            if len(waiting) > 2 * threads:
                count, future = waiting.popleft()
                yield future.result()
                done += count
                progress(done, total)
        for count, future in waiting:
            yield future.result()
            done += count
            progress(done, total)


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

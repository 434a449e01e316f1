"""Clustering of rows: rows with equal checksums, connected components, and groups around leaders within components."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.signatures.comparing import equal_bytes, mips_length, resemblance

_FREE = np.uint32(0xFFFFFFFF)


@njit(nogil=True, cache=True)
def components(rows: int, a: NDArray[np.uint32], b: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return for each of `rows` rows the least row of its connected component. Edges are between a[i] and b[i]."""
    root = np.arange(rows).astype(np.uint32)
    for i in range(a.size):
        x, y = _root(root, a[i]), _root(root, b[i])
        if x < y:
            root[y] = x
        else:
            root[x] = y
    for row in range(rows):
        # A root is never greater than the rows below it, so all rows before this one are final.
        root[row] = root[root[row]]
    return root


@njit(nogil=True, cache=True)
def _root(root: NDArray[np.uint32], row: int) -> int:
    while root[row] != row:
        root[row] = root[root[row]]
        row = root[row]
    return row


@njit(nogil=True, cache=True)
def adjacency(rows: int, a: NDArray[np.uint32], b: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the adjacency lists: row i has neighbours[starts[i] : starts[i + 1]]."""
    starts = np.zeros(rows + 1, np.int64)
    for i in range(a.size):
        starts[a[i]] += 1
        starts[b[i]] += 1
    for row in range(rows):
        starts[row + 1] += starts[row]
    # Each list is filled from its end to its start, after which `starts` has the starts again.
    neighbours = np.empty(starts[rows], np.uint32)
    for i in range(a.size):
        starts[a[i]] -= 1
        neighbours[starts[a[i]]] = b[i]
        starts[b[i]] -= 1
        neighbours[starts[b[i]]] = a[i]
    return starts, neighbours


@njit(nogil=True, cache=True)
def first_equal(checksums: NDArray[np.uint64], salt: np.uint64) -> NDArray[np.uint32]:
    """Return for each row of two words the first row with the same words.

    Uses an open-addressed table of rows. The salt is odd and affects only the choice of slots (see `shingling`).
    """
    bits = 1
    while (1 << bits) < 2 * len(checksums):
        bits += 1
    shift = np.uint64(64 - bits)
    mask = np.uint64((1 << bits) - 1)
    slots = np.full(1 << bits, _FREE)
    first = np.empty(len(checksums), np.uint32)
    for row in range(len(checksums)):
        slot = checksums[row, 0] * salt >> shift
        while slots[slot] != _FREE:
            other = slots[slot]
            if checksums[other, 0] == checksums[row, 0] and checksums[other, 1] == checksums[row, 1]:
                break
            slot = slot + np.uint64(1) & mask
        if slots[slot] == _FREE:
            slots[slot] = np.uint32(row)
        first[row] = slots[slot]
    return first


@njit(nogil=True, cache=True)
def find_leaders(
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    neighbours: NDArray[np.uint32],
    words: NDArray[np.uint64],
    word_starts: NDArray[np.int64],
    threshold: float,
) -> NDArray[np.uint32]:
    """Return the leader of each row: the first document of its cluster.

    Documents are processed in `order`. The candidates of a document are the clusters of its neighbours that were
    processed before, if the leader of the cluster is itself a neighbour or reaches the threshold of resemblance to the
    document. The document joins the candidate whose leader it resembles most, and the earliest of equal ones. Without
    candidates it becomes a leader. Rows that are not in `order` are their own leaders.

    `starts` and `neighbours` are the adjacency lists. The sketch of row r begins at word_starts[r].
    """
    rows = starts.size - 1
    leader = np.arange(rows).astype(np.uint32)
    place = np.full(rows, -1, np.int64)
    asked = np.full(rows, -1, np.int64)
    for at in range(order.size):
        row = order[at]
        place[row] = at
        sketch = words[word_starts[row] : word_starts[row + 1]]
        best, most = row, -1
        for i in range(starts[row], starts[row + 1]):
            if place[neighbours[i]] < 0:
                continue
            first = np.int64(leader[neighbours[i]])
            # An edge may have another reason than resemblance. A leader that is a neighbour is therefore compared even
            # if it was compared before as the leader of another neighbour.
            is_neighbour = first == np.int64(neighbours[i])
            if asked[first] == row and not is_neighbour:
                continue
            asked[first] = row
            equal = equal_bytes(sketch, words[word_starts[first] : word_starts[first + 1]])
            if not is_neighbour and resemblance(equal, mips_length(sketch)) < threshold:
                continue
            if equal > most or (equal == most and place[first] < place[best]):
                best, most = first, equal
        leader[row] = best
    return leader

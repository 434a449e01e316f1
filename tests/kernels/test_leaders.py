from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from neardup.kernels.offline import leaders
from neardup.kernels.signatures import comparing
from neardup.signatures.packed_sketch import compare
from tests.support import naive

M = 12
Edges = list[tuple[int, int]]


class Graph(NamedTuple):
    rows: int
    edges: Edges
    sketches: list[NDArray[np.uint64]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Generate documents with random resemblances, and random edges between them."""
    rows = draw(st.integers(1, 12))
    pairs = [(a, b) for a in range(rows) for b in range(a + 1, rows)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    values = st.lists(st.integers(0, 2), min_size=M, max_size=M)
    no_sample = np.empty(0, np.uint64)
    return Graph(rows, edges, [comparing.pack(0, np.array(draw(values), np.uint32), no_sample) for _ in range(rows)])


def columns(edges: Edges) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    both = np.array(edges, np.uint32).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def adjacency(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the start of each row's neighbours, and all neighbours."""
    near: list[list[int]] = [[] for _ in range(graph.rows)]
    for a, b in graph.edges:
        near[a].append(b)
        near[b].append(a)
    starts = np.cumsum([0, *map(len, near)]).astype(np.int64)
    return starts, np.array([b for each in near for b in each], np.uint32)


def leaders_of(graph: Graph, order: list[int], threshold: float) -> list[int]:
    ends = np.cumsum([0, *(sketch.size for sketch in graph.sketches)])
    words = np.concatenate(graph.sketches)
    found: list[int] = leaders.find_leaders(np.array(order), *adjacency(graph), words, ends, threshold).tolist()
    return found


@given(graphs())
def test_components(graph: Graph) -> None:
    assert leaders.components(graph.rows, *columns(graph.edges)).tolist() == naive.components(graph.rows, graph.edges)


@given(graphs())
def test_adjacency_has_each_edge_in_both_directions(graph: Graph) -> None:
    starts, neighbours = leaders.adjacency(graph.rows, *columns(graph.edges))
    expected_starts, expected = adjacency(graph)
    assert starts.tolist() == expected_starts.tolist()
    for row in range(graph.rows):
        own = slice(starts[row], starts[row + 1])
        assert sorted(neighbours[own].tolist()) == sorted(expected[own].tolist())


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40), st.integers(0, 2**63 - 1))
def test_the_first_equal_row(rows: list[tuple[int, int]], salt: int) -> None:
    # Values that differ only in the low bits fall into the same slots with some salts.
    checksums = np.array([(one << 62 | 1, other) for one, other in rows], np.uint64).reshape(-1, 2)
    expected = naive.first_equal(list(map(tuple, checksums.tolist())))
    assert leaders.first_equal(checksums, np.uint64(2 * salt + 1)).tolist() == expected


@given(graphs(), st.data(), st.floats(0, 1))
def test_rows_join_the_leader_that_they_resemble_most(graph: Graph, data: st.DataObject, threshold: float) -> None:
    order = data.draw(st.permutations(range(graph.rows)))
    expected = naive.leaders(
        order, graph.edges, lambda a, b: compare(graph.sketches[a], graph.sketches[b]).resemblance, threshold
    )
    assert leaders_of(graph, order, threshold) == [expected[row] for row in range(graph.rows)]


@given(graphs(), st.data(), st.floats(0, 1))
def test_leaders_can_be_chosen_component_by_component(graph: Graph, data: st.DataObject, threshold: float) -> None:
    order = data.draw(st.permutations(range(graph.rows)))
    whole = leaders_of(graph, order, threshold)
    component = naive.components(graph.rows, graph.edges)
    for each in set(component):
        rows = [row for row in order if component[row] == each]
        alone = leaders_of(graph, rows, threshold)
        assert [alone[row] for row in rows] == [whole[row] for row in rows]
        assert all(alone[row] == row for row in range(graph.rows) if row not in rows)


@given(graphs())
def test_resemblance_equals_that_of_packed_sketches(graph: Graph) -> None:
    a, b = graph.sketches[0], graph.sketches[-1]
    assert comparing.resemblance(comparing.equal_bytes(a, b), M) == compare(a, b).resemblance

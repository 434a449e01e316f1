"""Clusters: documents around a first one, under one of two rules.

`representative`: in the order of all pages a document joins, among the clusters of its earlier neighbours whose first
document it resembles enough or has an edge with (by spots, too), the one whose first document it resembles most; else
it begins one. What a cluster is depends on
earlier documents only, and a chain of documents, each like the next, does not become one cluster.

`transitive`: whatever edges connect is one cluster.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.offline.leaders import adjacency, components, find_leaders
from neardup.offline.clusters.copies import Copies
from neardup.offline.clusters.edges import Edges
from neardup.offline.clusters.groups import first_of_each, sizes
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.options import Options

TRANSITIVE: Final = "transitive"


class Leaders(NamedTuple):
    """Of each row: the first kept document of its cluster, and of what edges connect it with."""

    cluster: NDArray[np.uint32]
    component: NDArray[np.uint32]


class PreviousClusters(NamedTuple):
    """The clusters of the pass before, and the rows whose edges are not as they were then."""

    cluster: NDArray[np.uint32]
    touched: NDArray[np.uint32]


def find_clusters(
    documents: ColumnStore, copies: Copies, edges: Edges, options: Options, previous: PreviousClusters | None = None
) -> Leaders:
    """Lead all rows, copies as their kept row. With `before`, only what is connected with a touched row is led anew."""
    connected = components(len(documents), edges.a, edges.b)
    first = first_of_each(connected, documents.order)
    if options.rule == TRANSITIVE:
        cluster = first
    else:
        cluster = _assign_leaders(documents, edges, connected, options.thresholds.resemblance, previous)
    return Leaders(cluster[copies.kept], first[copies.kept])


def _assign_leaders(
    documents: ColumnStore,
    edges: Edges,
    connected: NDArray[np.uint32],
    threshold: float,
    previous: PreviousClusters | None,
) -> NDArray[np.uint32]:
    rows = len(documents)
    affected = sizes(connected) > 1
    cluster = np.arange(rows, dtype=np.uint32)
    if previous is not None:
        touched = np.zeros(rows, np.bool_)
        touched[connected[previous.touched]] = True
        untouched = affected[: previous.cluster.size] & ~touched[connected[: previous.cluster.size]]
        cluster[: previous.cluster.size][untouched] = previous.cluster[untouched]
        affected &= touched[connected]
    within = affected[edges.a]
    starts, neighbours = adjacency(rows, edges.a[within], edges.b[within])
    order = documents.order[affected[documents.order]]
    led = find_leaders(order, starts, neighbours, documents.words, documents.starts, threshold)
    cluster[affected] = led[affected]
    return cluster

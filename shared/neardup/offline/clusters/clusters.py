"""Clusters: documents around a first document, under one of two rules.

`representative`: documents are assigned in the order of all pages. A document joins the cluster of an earlier neighbour
if its resemblance to the first document of that cluster reaches the threshold, or if the two share an edge, for example
by spots. Among several such clusters it joins the one whose first document it resembles most. Otherwise it starts a
cluster. The cluster of a document depends only on earlier documents, and a chain of documents that each resemble the
next does not become one cluster.

`transitive`: connected components of the edges.
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
    """Per row, the first kept document of its cluster (`cluster`) and of its connected component (`component`)."""

    cluster: NDArray[np.uint32]
    component: NDArray[np.uint32]


class PreviousClusters(NamedTuple):
    """Clusters of the previous pass, and the rows that have gained or lost edges since."""

    cluster: NDArray[np.uint32]
    touched: NDArray[np.uint32]


def find_clusters(
    documents: ColumnStore, copies: Copies, edges: Edges, options: Options, previous: PreviousClusters | None = None
) -> Leaders:
    """Assign all rows to clusters. Copies join the cluster of their kept row.

    With `previous`, only rows that are connected to a touched row are assigned again.
    """
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

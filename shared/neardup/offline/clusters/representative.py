"""The document that stands for its cluster, by rule; among equals, the first in the order of all pages.

| rule | stands for the cluster |
|---|---|
| first | the first document |
| longest | the one with most bytes |
| shortest-url | the one with the shortest url |
| https | the first one that was fetched by https, if there is one |
"""

import numpy as np
from numpy.typing import NDArray

from neardup.offline.clusters.groups import first_of_each, sizes
from neardup.offline.corpus.columns import ColumnStore


def representatives(documents: ColumnStore, cluster: NDArray[np.uint32], rule: str) -> NDArray[np.uint32]:
    """For each row the one that stands for its cluster."""
    if rule == "first":
        return first_of_each(cluster, documents.order)
    if rule == "longest":
        return first_of_each(cluster, _ordered_by(documents, -documents.size))
    # Urls are text to be read one by one: only those that have a choice are.
    choice = np.flatnonzero(sizes(cluster) > 1)
    key = np.zeros(len(documents), np.int64)
    for row in choice.tolist():
        url = documents.url(row)
        key[row] = len(url) if rule == "shortest-url" else not url.lower().startswith("https:")
    return first_of_each(cluster, _ordered_by(documents, key))


def _ordered_by(documents: ColumnStore, key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows by this, and among equals as all pages are."""
    return documents.order[np.argsort(key[documents.order], kind="stable")]

"""Choice of the document that represents a cluster. On a tie, the first document in the order of all pages is chosen.

| rule | representative |
|---|---|
| first | the first document |
| longest | the largest document in bytes |
| shortest-url | the document with the shortest URL |
| https | the first document with an https URL, or else the first document |
"""

import numpy as np
from numpy.typing import NDArray

from neardup.offline.clusters.groups import first_of_each, sizes
from neardup.offline.corpus.columns import ColumnStore


def representatives(documents: ColumnStore, cluster: NDArray[np.uint32], rule: str) -> NDArray[np.uint32]:
    """Return for each row the representative of its cluster."""
    if rule == "first":
        return first_of_each(cluster, documents.order)
    if rule == "longest":
        return first_of_each(cluster, _ordered_by(documents, -documents.size))
    # Reading a URL is slow, so read only those in clusters that offer a choice.
    choice = np.flatnonzero(sizes(cluster) > 1)
    key = np.zeros(len(documents), np.int64)
    for row in choice.tolist():
        url = documents.url(row)
        key[row] = len(url) if rule == "shortest-url" else not url.lower().startswith("https:")
    return first_of_each(cluster, _ordered_by(documents, key))


def _ordered_by(documents: ColumnStore, key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows sorted by key, and by the order of all pages for equal keys."""
    return documents.order[np.argsort(key[documents.order], kind="stable")]

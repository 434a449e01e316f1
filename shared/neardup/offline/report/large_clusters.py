"""Warnings about clusters that are unusually large, with a hint at the cause.

Usual causes are templates that fill most of a page, and error pages that thousands of hosts serve. The warning names
the most frequent host and the most frequent shingle of the cluster.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.offline.clusters.copies import Copies
from neardup.offline.clusters.groups import first_of_each
from neardup.offline.corpus.columns import ColumnStore
from neardup.signatures.packed_sketch import sample_values
from neardup.util.urls import host_or_url

MOST_WARNINGS: Final = 100
LOOKED_AT: Final = 10_000
"""Number of documents at the start of a cluster in which hosts and shingles are counted."""


def warnings_of(documents: ColumnStore, copies: Copies, cluster: NDArray[np.uint32], most: int) -> list[str]:
    """Return a warning per cluster of at least `most` documents, the largest first, at most MOST_WARNINGS."""
    sizes = np.bincount(cluster, minlength=len(documents))
    large = np.flatnonzero(sizes >= most)
    first = first_of_each(cluster, documents.order)
    listed = large[np.lexsort((documents.rank[large], -sizes[large]))][:MOST_WARNINGS]
    in_order = cluster[documents.order]
    return [
        _warning(documents, copies, documents.order[in_order == each], int(first[each])) for each in listed.tolist()
    ]


def _warning(documents: ColumnStore, copies: Copies, members: NDArray[np.int64], first: int) -> str:
    some = members[:LOOKED_AT]
    urls = (documents.url(row) for row in some.tolist())
    sketches = (documents.sketch(row) for row in some[copies.comparable[some]].tolist())
    return warning_text(str(documents.document(first)), members.size, urls, sketches)


def warning_text(name: str, size: int, urls: Iterable[str], sketches: Iterable[NDArray[np.uint64]]) -> str:
    """Describe a large cluster by its most frequent host and shingle.

    `urls` are those of the examined documents, `sketches` those of the examined documents that are not copies.
    """
    hosts = Counter(map(host_or_url, urls))
    [(host, of_host)] = hosts.most_common(1)
    text = f"cluster {name} has {size:,} documents, {of_host / hosts.total():.0%} of them from {host}"
    samples = [sample_values(sketch)[1] for sketch in sketches]
    shingles, counts = np.unique(np.concatenate([*samples, np.empty(0, np.uint64)]), return_counts=True)
    if not shingles.size:
        return text
    most = int(counts.argmax())
    return (
        f"{text}; {counts[most] / len(samples):.0%} of those that are not copies have the shingle {shingles[most]:016x}"
    )

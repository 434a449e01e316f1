"""Counts for the report of a pass on the local engine."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.offline.clusters.clusters import Leaders
from neardup.offline.clusters.copies import LEVELS, Copies
from neardup.offline.clusters.groups import first_of_each
from neardup.offline.clusters.overturned import NEAR, Revisions, relations_to
from neardup.offline.corpus.columns import UNIQUE, ColumnStore
from neardup.offline.report.hosts import with_most_duplicates
from neardup.offline.report.large_clusters import warnings_of
from neardup.offline.report.report import Phase, Report

ENGINE: Final = "local"


def make_report(
    documents: ColumnStore,
    copies: Copies,
    leaders: Leaders,
    revisions: Revisions,
    *,
    new_documents: int,
    edges: int,
    contained: int,
    pairs: Mapping[str, int],
    common_keys: Mapping[str, int],
    large_cluster: int,
    phases: Sequence[Phase],
) -> Report:
    """Create the report. `pairs` and `common_keys` are the counts of this run by source."""
    first = first_of_each(leaders.cluster, documents.order)
    duplicates = first != np.arange(len(documents))
    rows = np.flatnonzero(duplicates)
    relations = np.bincount(relations_to(documents, copies, rows, first[rows]), minlength=NEAR + 1).tolist()
    sizes, transitive = _sizes(leaders.cluster), _sizes(leaders.component)
    return Report(
        engine=ENGINE,
        signature_version=documents.manifest.signature_version,
        documents=len(documents),
        new_documents=new_documents,
        identical=relations[0],
        same_text=relations[1],
        same_shingles=relations[LEVELS - 1],
        near=relations[NEAR],
        clusters=sizes.size,
        largest=int(sizes.max(initial=0)),
        sizes={int(size): int(count) for size, count in zip(*np.unique(sizes, return_counts=True), strict=True)},
        pairs=dict(pairs),
        common_keys=dict(common_keys),
        edges=edges,
        contained=contained,
        overturned=int((revisions.relation != UNIQUE).sum()),
        transitive_clusters=transitive.size,
        transitive_largest=int(transitive.max(initial=0)),
        hosts=with_most_duplicates(documents, duplicates),
        warnings=warnings_of(documents, copies, leaders.cluster, large_cluster),
        phases=list(phases),
    )


def _sizes(group: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the size of each group."""
    counts = np.bincount(group)
    return counts[counts > 0]

"""Writers of the result files. Each file is written to a temporary name and renamed.

Clusters are sorted by their first documents, all other rows by the order of all pages, so equal results make equal
files.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet
from numpy.typing import NDArray

from neardup.kernels.offline.verifying import NEVER, likenesses, resemblances
from neardup.matching.match import RELATIONS
from neardup.offline.clusters.copies import LEVELS, Copies
from neardup.offline.clusters.edges import Contained, Edges
from neardup.offline.clusters.groups import first_of_each, sizes
from neardup.offline.clusters.overturned import NEAR, Revisions, relations_to
from neardup.offline.corpus.columns import UNIQUE, ColumnStore
from neardup.offline.results.schemas import CLUSTERS, CONTAINED, EDGES, OVERTURNED
from neardup.signatures.packed_sketch import LEAST_SAMPLED
from neardup.util.atomic_file import replacing

FILES: Final = ("clusters", "contained", "edges", "overturned")
_ROWS_AT_ONCE: Final = 1 << 16
_RELATIONS: Final = np.array([*map(str, RELATIONS), "first"], object)
_FIRST: Final = len(RELATIONS)
_SEPARATOR: Final = "+"

_Columns = list[Sequence[object] | NDArray[np.generic]]
"""The values of each column of a schema, in its order. Arrow arrays count as sequences."""


def write_clusters(
    directory: Path,
    documents: ColumnStore,
    copies: Copies,
    cluster: NDArray[np.uint32],
    representative: NDArray[np.uint32],
) -> None:
    """Write one row per document. `cluster` and `representative` have the cluster number and representative per row."""
    first, members = first_of_each(cluster, documents.order), sizes(cluster)

    def batch(rows: NDArray[np.int64]) -> _Columns:
        relation = relations_to(documents, copies, rows, first[rows])
        near = relation == NEAR
        resemblance = np.ones(rows.size, np.float32)
        a, b = copies.kept[rows[near]], copies.kept[first[rows[near]]]
        resemblance[near] = resemblances(a, b, documents.words, documents.starts)
        relation[rows == first[rows]] = _FIRST
        # Documents of a cluster are adjacent, so most representatives are in the same batch.
        urls = {row: documents.url(row) for row in {*rows.tolist(), *representative[rows].tolist()}}
        return [
            *(documents.id[rows, field] for field in range(3)),
            [urls[row] for row in rows.tolist()],
            [documents.fetched_at(row) for row in rows.tolist()],
            documents.size[rows],
            _names(documents, first[rows]),
            _RELATIONS[relation],
            resemblance,
            members[rows],
            _names(documents, representative[rows]),
            [urls[row] for row in representative[rows].tolist()],
        ]

    _write(directory / "clusters.parquet", CLUSTERS, np.lexsort((documents.rank, documents.rank[first])), batch)


def write_contained(directory: Path, documents: ColumnStore, contained: Contained) -> None:
    """Write one row per pair of a contained document and its container."""

    def batch(rows: NDArray[np.int64]) -> _Columns:
        names = (_names(documents, side[rows]) for side in (contained.inner, contained.outer))
        return [*names, contained.containment[rows]]

    order = np.lexsort((documents.rank[contained.outer], documents.rank[contained.inner]))
    _write(directory / "contained.parquet", CONTAINED, order, batch)


def write_edges(directory: Path, documents: ColumnStore, edges: Edges, sources: Sequence[str]) -> None:
    """Write one row per edge, the earlier document first. `sources` has the name of the source for each bit."""
    swapped = documents.rank[edges.a] > documents.rank[edges.b]
    earlier, later = np.where(swapped, edges.b, edges.a), np.where(swapped, edges.a, edges.b)
    named = [_SEPARATOR.join(name for bit, name in enumerate(sources) if mask >> bit & 1) for mask in range(256)]

    def batch(rows: NDArray[np.int64]) -> _Columns:
        names = (_names(documents, side[rows]) for side in (earlier, later))
        return [*names, edges.resemblance[rows], np.array(named, object)[edges.sources[rows]]]

    _write(directory / "edges.parquet", EDGES, np.lexsort((documents.rank[later], documents.rank[earlier])), batch)


def write_overturned(directory: Path, documents: ColumnStore, copies: Copies, revisions: Revisions) -> None:
    """Write one row per document on which the pass has ever contradicted the stream."""

    def batch(rows: NDArray[np.int64]) -> _Columns:
        row, relation, target = revisions.row[rows], revisions.relation[rows], revisions.target[rows]
        nothing = relation == UNIQUE
        resemblance, containment = np.ones(rows.size, np.float32), np.ones(rows.size, np.float32)
        compared = relation >= LEVELS
        a, b = (copies.kept[side[compared]] for side in (row, target))
        found = likenesses(a, b, documents.words, documents.starts, LEAST_SAMPLED, NEVER)
        resemblance[compared], containment[compared] = found[:, 0], found[:, 1]
        unsaid = nothing | (containment < 0)
        return [
            _names(documents, row),
            [documents.url(each) for each in row.tolist()],
            [documents.fetched_at(each) for each in row.tolist()],
            revisions.revision[rows],
            pyarrow.array(_RELATIONS[relation], mask=nothing),
            pyarrow.array(_names(documents, target).to_numpy(zero_copy_only=False), mask=nothing),
            [None if each < 0 else documents.url(each) for each in target.tolist()],
            pyarrow.array(resemblance, mask=nothing),
            pyarrow.array(containment, mask=unsaid),
        ]

    _write(directory / "overturned.parquet", OVERTURNED, np.argsort(documents.rank[revisions.row]), batch)


def _names(documents: ColumnStore, rows: NDArray[np.integer]) -> pyarrow.Array:
    """Return the names of documents as "partition:offset"."""
    partition, offset = (pyarrow.array(documents.id[rows, field]).cast(pyarrow.string()) for field in (1, 2))
    return pyarrow.compute.binary_join_element_wise(partition, offset, ":")


def _write(
    path: Path, schema: pyarrow.Schema, order: NDArray[np.int64], batch: Callable[[NDArray[np.int64]], _Columns]
) -> None:
    """Write the rows in this order in batches, and replace the file only when all rows are written."""
    with (
        replacing(path) as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for rows in _pieces(order):
            columns = zip(batch(rows), schema.types, strict=True)
            arrays = [pyarrow.array(values, of_type) for values, of_type in columns]
            writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))


def _pieces(order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (order[start : start + _ROWS_AT_ONCE] for start in range(0, order.size, _ROWS_AT_ONCE))

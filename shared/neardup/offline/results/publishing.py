"""Publication of a pass: the cluster of each URL whose cluster changed, and revised verdicts.

A URL that no longer belongs to a cluster, because it was forgotten, is published without a value, so that a compacted
topic drops it.

The published content is stored next to the results, so a pass publishes only differences. It is stored after all
messages were acknowledged. After a crash, messages are therefore repeated with the same content, and none is lost.

    <results>/published/clusters.parquet ...      published content
    <results>/published/clusters.parquet.next     content once the messages in *.unsaid are published
    <results>/published/clusters.unsaid ...       the difference

Files are read in batches of some thousand rows and compared by digests.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import orjson
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from neardup.errors import CorruptState
from neardup.log import Output
from neardup.messages.topics import Topics
from neardup.messages.verdicts import write_verdict
from neardup.offline.results.row_digests import COLUMNS, UrlRows, batches_of, rows_of
from neardup.offline.results.schemas import ClusterRow, OverturnedRow
from neardup.types import Kind, PageRef, Relation, Verdict
from neardup.util.atomic_file import replacing
from neardup.util.formatting import rounded

FOUND_BY: Final = ("offline",)
PUBLISHED: Final = "published"
_CLUSTERS, _OVERTURNED = "clusters.parquet", "overturned.parquet"
_PENDING: Final = ("clusters", "forgotten", "verdicts")
_NO_ROWS: Final = np.empty(0, np.int64)


def find_unpublished(results: Path) -> None:
    """Write the difference between the results and the published content, for `unpublished`. Raises StateError."""
    (results / PUBLISHED).mkdir(exist_ok=True)
    for name in (_CLUSTERS, _OVERTURNED):
        shutil.copyfile(results / name, _next(results, name))
    now, published = UrlRows.of(_next(results, _CLUSTERS)), _published_rows(results)
    if published is None:
        new, forgotten = np.sort(now.row), _NO_ROWS
    else:
        new, forgotten = now.changed_from(published), published.missing_in(now)
    _write_rows(_next(results, _CLUSTERS), new, _pending(results, "clusters"), COLUMNS)
    _write_rows(results / PUBLISHED / _CLUSTERS, forgotten, _pending(results, "forgotten"), COLUMNS[:1])
    with replacing(_pending(results, "verdicts")) as file:
        pyarrow.parquet.write_table(_new_verdicts(results), file, write_page_checksum=True)


def unpublished(results: Path, topics: Topics, signature_version: str, form: str) -> Iterator[list[Output]]:
    """Yield the messages that `find_unpublished` prepared, in batches: clusters, then verdicts in the format `form`.

    Raises StateError.
    """
    for batch in _rows(_pending(results, "clusters")):
        clusters: list[ClusterRow] = batch.to_pylist()
        yield [Output(topics.clusters, None, each["url"].encode(), _cluster(each)) for each in clusters]
    for batch in _rows(_pending(results, "forgotten")):
        yield [Output(topics.clusters, None, url.encode(), None) for url in batch.column("url").to_pylist()]
    for batch in _rows(_pending(results, "verdicts")):
        revisions: list[OverturnedRow] = batch.to_pylist()
        verdicts = [_verdict(each, signature_version) for each in revisions]
        yield [Output(topics.verdicts, None, each.url.encode(), write_verdict(each, form)) for each in verdicts]


def set_published(results: Path) -> None:
    """Record that all messages of `unpublished` were published."""
    for name in (_CLUSTERS, _OVERTURNED):
        _next(results, name).replace(results / PUBLISHED / name)
    for name in _PENDING:
        _pending(results, name).unlink()


def _next(results: Path, name: str) -> Path:
    return results / PUBLISHED / f"{name}.next"


def _pending(results: Path, name: str) -> Path:
    return results / PUBLISHED / f"{name}.unsaid"


def _published_rows(results: Path) -> UrlRows | None:
    """Return the published rows, or None before the first publication.

    Returns None for a damaged file, too, because repeated messages are harmless.
    """
    path = results / PUBLISHED / _CLUSTERS
    try:
        return UrlRows.of(path) if path.exists() else None
    except CorruptState:
        return None


def _write_rows(source: Path, wanted: NDArray[np.int64], target: Path, columns: Sequence[str]) -> None:
    """Write selected rows of a file of clusters. `wanted` is sorted."""
    schema = pyarrow.schema({name: pyarrow.string() for name in columns})
    first = 0
    with (
        replacing(target) as file,
        pyarrow.parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer,
    ):
        for batch in rows_of(source) if wanted.size else ():
            start, end = np.searchsorted(wanted, (first, first + len(batch)))
            if start < end:
                writer.write_batch(batch.select(list(columns)).take(pyarrow.array(wanted[start:end] - first)))
            first += len(batch)


def _new_verdicts(results: Path) -> pyarrow.Table:
    """Return the revisions that were not published, or all if the file of published ones is missing or damaged."""
    table, before = _table(_next(results, _OVERTURNED)), results / PUBLISHED / _OVERTURNED
    keys = ["document", "revision"]
    try:
        return table.join(_table(before, keys), keys, join_type="left anti") if before.exists() else table
    except CorruptState:
        return table


def _table(path: Path, columns: list[str] | None = None) -> pyarrow.Table:
    """Read all columns of a file, or the given ones."""
    try:
        return pyarrow.parquet.read_table(path, columns=columns, page_checksum_verification=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CorruptState(
            f"{path}: expected results of an offline pass, got: {error}; run `neardup recluster --full`"
        ) from error


def _rows(path: Path) -> Iterator[pyarrow.RecordBatch]:
    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            yield from batches_of(file, file.schema_arrow.names)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CorruptState(f"{path}: expected messages to publish, got: {error}; run the pass again") from error


def _cluster(row: ClusterRow) -> bytes:
    return orjson.dumps(
        {
            "url": row["url"],
            "document": row["document"],
            "cluster": row["cluster"],
            "relation": row["relation"],
            "representative": {"url": row["representative_url"], "document": row["representative"]},
        }
    )


def _verdict(row: OverturnedRow, signature_version: str) -> Verdict:
    document, url = row["duplicate_of"], row["duplicate_of_url"]
    first = None if document is None or url is None else PageRef(url, document)
    return Verdict(
        url=row["url"],
        document=row["document"],
        fetched_at=row["fetched_at"],
        verdict=Kind.UNIQUE if first is None else Kind.DUPLICATE,
        revision=row["revision"],
        duplicate_of=first,
        relation=None if row["relation"] is None else Relation(row["relation"]),
        same_url=first is not None and first.url == row["url"],
        resemblance=rounded(row["resemblance"]),
        containment=rounded(row["containment"]),
        found_by=FOUND_BY,
        first_of_group=first,
        signature_version=signature_version,
    )

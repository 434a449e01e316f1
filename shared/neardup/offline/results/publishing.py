"""What an offline pass has to say: the cluster of every url that has another one than before, and revised verdicts.

A url that is in no cluster any more, because it was forgotten, is said without a value: a compacted topic drops it.

What was said is kept beside the results, so that a pass says only what is new. It is kept after everything was
acknowledged: a crash repeats, it never loses, and repeats say the same.

    <results>/published/clusters.parquet ...      what was said
    <results>/published/clusters.parquet.next     what will have been, once that in *.unsaid is
    <results>/published/clusters.unsaid ...       the difference

Files are read some thousand rows at a time, and compared by digests.
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
    """Lay down what is to be said of the results as they are now, for `unpublished`. Raises StateError."""
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
    """What `find_unpublished` found, some thousands at a time: clusters first, then verdicts, which have a `form`.

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
    """All that `unpublished` gave was said."""
    for name in (_CLUSTERS, _OVERTURNED):
        _next(results, name).replace(results / PUBLISHED / name)
    for name in _PENDING:
        _pending(results, name).unlink()


def _next(results: Path, name: str) -> Path:
    return results / PUBLISHED / f"{name}.next"


def _pending(results: Path, name: str) -> Path:
    return results / PUBLISHED / f"{name}.unsaid"


def _published_rows(results: Path) -> UrlRows | None:
    """None before the first time, and when a crash tore it: to say everything again does no harm."""
    path = results / PUBLISHED / _CLUSTERS
    try:
        return UrlRows.of(path) if path.exists() else None
    except CorruptState:
        return None


def _write_rows(source: Path, wanted: NDArray[np.int64], target: Path, columns: Sequence[str]) -> None:
    """Those rows of a file of clusters, which are in order."""
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
    """Revisions that were not said; all of them where what was said is not there, or torn."""
    table, before = _table(_next(results, _OVERTURNED)), results / PUBLISHED / _OVERTURNED
    keys = ["document", "revision"]
    try:
        return table.join(_table(before, keys), keys, join_type="left anti") if before.exists() else table
    except CorruptState:
        return table


def _table(path: Path, columns: list[str] | None = None) -> pyarrow.Table:
    """Of a file, all columns or these."""
    try:
        return pyarrow.parquet.read_table(path, columns=columns, page_checksum_verification=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CorruptState(f"{path}: expected results of an offline pass: {error}") from error


def _rows(path: Path) -> Iterator[pyarrow.RecordBatch]:
    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            yield from batches_of(file, file.schema_arrow.names)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CorruptState(f"{path}: expected what is to be said: {error}") from error


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

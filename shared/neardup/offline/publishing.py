"""What an offline pass has to say: the cluster of every url that has another one than before, and revised verdicts.

A url that is in no cluster any more, because it was forgotten, is said without a value: a compacted topic drops it.

What was said is kept beside the results, so that a pass says only what is new. It is kept after everything was
acknowledged: a crash repeats, it never loses, and repeats say the same.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from neardup.errors import CorruptState
from neardup.log import Output
from neardup.topics import Topics
from neardup.types import Kind, PageRef, Relation, Verdict
from neardup.verdict import write_verdict
from neardup.wording import rounded

FOUND_BY: Final = ("offline",)
PUBLISHED: Final = "published"
_CLUSTERS, _OVERTURNED = "clusters.parquet", "overturned.parquet"
_CLUSTER_COLUMNS: Final = ("url", "document", "cluster", "relation", "representative", "representative_url")
_ROWS: Final = 1 << 14


def unpublished(results: Path, topics: Topics, signature_version: str, form: str) -> Iterator[list[Output]]:
    """What is to be said, some thousands at a time: clusters first, then verdicts. `form` is that of verdicts.

    Says what the results are now, whatever another pass makes of them meanwhile. Raises StateError.
    """
    (results / PUBLISHED).mkdir(exist_ok=True)
    for name in (_CLUSTERS, _OVERTURNED):
        shutil.copyfile(results / name, _next(results, name))
    for row in _rows(_new_clusters(results)):
        yield [Output(topics.clusters, None, each["url"].encode(), _cluster(each)) for each in row]
    for row in _rows(_forgotten_urls(results)):
        yield [Output(topics.clusters, None, each["url"].encode(), None) for each in row]
    for row in _rows(_new_verdicts(results)):
        verdicts = [_verdict(each, signature_version) for each in row]
        yield [Output(topics.verdicts, None, each.url.encode(), write_verdict(each, form)) for each in verdicts]


def set_published(results: Path) -> None:
    """All that `unpublished` gave was said."""
    for name in (_CLUSTERS, _OVERTURNED):
        _next(results, name).replace(results / PUBLISHED / name)


def _next(results: Path, name: str) -> Path:
    return results / PUBLISHED / f"{name}.next"


def _new_clusters(results: Path) -> pyarrow.Table:
    return _without(results, _CLUSTERS, _last_of_each_url, _CLUSTER_COLUMNS)


def _forgotten_urls(results: Path) -> pyarrow.Table:
    """Of those that were said; none if what was said is lost."""
    now = _table(_next(results, _CLUSTERS), ["url"])
    try:
        said = _table(results / PUBLISHED / _CLUSTERS, ["url"])
    except CorruptState:
        return now.slice(0, 0)
    return said.join(now, "url", join_type="left anti").group_by("url").aggregate([])


def _new_verdicts(results: Path) -> pyarrow.Table:
    return _without(results, _OVERTURNED, lambda table: table, ("document", "revision"))


def _without(
    results: Path, name: str, read: Callable[[pyarrow.Table], pyarrow.Table], keys: Sequence[str]
) -> pyarrow.Table:
    """The rows whose keys are not among those published."""
    table = read(_table(_next(results, name)))
    before = results / PUBLISHED / name
    if not before.exists():
        return table
    try:
        known = read(_table(before)).select(keys)
    except CorruptState:
        # A crash tore it. To say everything again does no harm.
        return table
    return table.join(known, list(keys), join_type="left anti")


def _table(path: Path, columns: list[str] | None = None) -> pyarrow.Table:
    """Of a file, all columns or these."""
    try:
        return pyarrow.parquet.read_table(path, columns=columns, page_checksum_verification=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CorruptState(f"{path}: expected results of an offline pass: {error}") from error


def _last_of_each_url(table: pyarrow.Table) -> pyarrow.Table:
    """A url's last document is the one that it stands for now."""
    table = table.sort_by([("timestamp", "ascending"), ("partition", "ascending"), ("offset", "ascending")])
    urls = table.column("url").combine_chunks().dictionary_encode().indices.to_numpy()
    last = np.zeros(int(urls.max()) + 1 if urls.size else 0, np.int64)
    last[urls] = np.arange(urls.size)
    table = table.take(pyarrow.array(last))
    names = pyarrow.compute.binary_join_element_wise(
        table.column("partition").cast(pyarrow.string()), table.column("offset").cast(pyarrow.string()), ":"
    )
    return table.append_column("document", names).select(_CLUSTER_COLUMNS)


def _rows(table: pyarrow.Table) -> Iterator[list[dict[str, Any]]]:
    for batch in table.to_batches(_ROWS):
        if len(batch):
            yield batch.to_pylist()


def _cluster(row: dict[str, Any]) -> bytes:
    return orjson.dumps(
        {
            "url": row["url"],
            "document": row["document"],
            "cluster": row["cluster"],
            "relation": row["relation"],
            "representative": {"url": row["representative_url"], "document": row["representative"]},
        }
    )


def _verdict(row: dict[str, Any], signature_version: str) -> Verdict:
    first = None if row["duplicate_of"] is None else PageRef(row["duplicate_of_url"], row["duplicate_of"])
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

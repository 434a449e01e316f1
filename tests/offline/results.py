"""Results of an offline pass, written by hand."""

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from neardup.offline.results.schemas import CLUSTERS, OVERTURNED


def clustered(offset: int, cluster: int, *, url: str | None = None, timestamp: int | None = None) -> dict[str, Any]:
    """Return a row of clusters.parquet: a document in the cluster of another one."""
    return {
        "timestamp": offset if timestamp is None else timestamp,
        "partition": 0,
        "offset": offset,
        "url": url or f"http://a.example/{offset}",
        "fetched_at": None,
        "size": 100,
        "cluster": f"0:{cluster}",
        "relation": "first" if offset == cluster else "near",
        "resemblance": 1.0 if offset == cluster else 0.8,
        "cluster_size": 2,
        "representative": f"0:{cluster}",
        "representative_url": f"http://a.example/{cluster}",
    }


def overturned(offset: int, first: int | None, revision: int = 2) -> dict[str, Any]:
    """Return a row of overturned.parquet."""
    return {
        "document": f"0:{offset}",
        "url": f"http://a.example/{offset}",
        "fetched_at": "2026-01-01T00:00:00Z",
        "revision": revision,
        "relation": None if first is None else "near",
        "duplicate_of": None if first is None else f"0:{first}",
        "duplicate_of_url": None if first is None else f"http://a.example/{first}",
        "resemblance": None if first is None else 0.8,
        "containment": None,
    }


def write_results(directory: Path, clusters: list[dict[str, Any]], overturned_rows: list[dict[str, Any]]) -> None:
    """Write the files of a pass that publishing reads."""
    directory.mkdir(exist_ok=True)
    for name, rows, schema in (("clusters", clusters, CLUSTERS), ("overturned", overturned_rows, OVERTURNED)):
        pyarrow.parquet.write_table(
            pyarrow.Table.from_pylist(rows, schema), directory / f"{name}.parquet", row_group_size=5
        )

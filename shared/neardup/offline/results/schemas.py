"""Schemas of the Parquet files with the results of a pass.

| file | row |
|---|---|
| clusters.parquet | a document with its cluster, its relation to the first document, and the representative |
| contained.parquet | a document that is contained in another; both are kept documents |
| edges.parquet | two documents that resemble each other |
| overturned.parquet | a document that the stream called unique and the pass found to be a duplicate |

A cluster has the name of its first document, "partition:offset". A document without duplicates is a cluster of one.
"""

from typing import Final, TypedDict

import pyarrow

_ID: Final = {"timestamp": pyarrow.int64(), "partition": pyarrow.int64(), "offset": pyarrow.int64()}

CLUSTERS: Final = pyarrow.schema(
    {
        **_ID,
        "url": pyarrow.string(),
        "fetched_at": pyarrow.string(),
        "size": pyarrow.int64(),
        "cluster": pyarrow.string(),
        # "first", or the relation to the first document of the cluster: identical, same-text, same-shingles, near.
        "relation": pyarrow.string(),
        "resemblance": pyarrow.float32(),
        "cluster_size": pyarrow.int64(),
        "representative": pyarrow.string(),
        "representative_url": pyarrow.string(),
    }
)
CONTAINED: Final = pyarrow.schema(
    {"document": pyarrow.string(), "container": pyarrow.string(), "containment": pyarrow.float32()}
)
EDGES: Final = pyarrow.schema(
    {"a": pyarrow.string(), "b": pyarrow.string(), "resemblance": pyarrow.float32(), "sources": pyarrow.string()}
)
OVERTURNED: Final = pyarrow.schema(
    {
        "document": pyarrow.string(),
        "url": pyarrow.string(),
        "fetched_at": pyarrow.string(),
        "revision": pyarrow.int64(),
        "relation": pyarrow.string(),
        "duplicate_of": pyarrow.string(),
        "duplicate_of_url": pyarrow.string(),
        "resemblance": pyarrow.float32(),
        "containment": pyarrow.float32(),
    }
)


class ClusterRow(TypedDict):
    """The columns of `CLUSTERS` that are published for the last document of a URL."""

    url: str
    document: str
    cluster: str
    relation: str
    representative: str
    representative_url: str


class OverturnedRow(TypedDict):
    """A row of `OVERTURNED`."""

    document: str
    url: str
    fetched_at: str | None
    revision: int
    relation: str | None
    duplicate_of: str | None
    duplicate_of_url: str | None
    resemblance: float | None
    containment: float | None

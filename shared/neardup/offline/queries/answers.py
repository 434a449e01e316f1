"""Result types of `queries`, as plain values."""

from dataclasses import dataclass

from neardup.types import PageRef


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A document in a cluster, and its relation to the first document of the cluster ("first" for that document)."""

    url: str
    document: str
    fetched_at: str | None
    size: int
    relation: str
    resemblance: float | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of one or more documents. `urls` has the last fetched document per URL, the latest first."""

    name: str
    size: int
    representative: PageRef
    urls: list[ClusterMember]


@dataclass(frozen=True, slots=True)
class UrlDocument:
    """A document of the queried URL."""

    document: str
    fetched_at: str | None
    size: int
    cluster: str
    relation: str
    resemblance: float | None


@dataclass(frozen=True, slots=True)
class Containment:
    """The other document of a containment, and the share of the contained document that is in the container."""

    url: str
    document: str
    containment: float


@dataclass(frozen=True, slots=True)
class Lookup:
    """The documents of a URL, the latest first, with their clusters, containers and contained documents."""

    url: str
    documents: list[UrlDocument]
    clusters: list[Cluster]
    contained_in: list[Containment]
    contains: list[Containment]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarDocument:
    """A document that resembles a text.

    `relation` is "contains" if the text contains the document, and "contained" if the document contains the text.
    """

    url: str
    document: str
    fetched_at: str | None
    cluster: str
    cluster_size: int
    relation: str | None
    resemblance: float
    text_in_document: float | None
    document_in_text: float | None


@dataclass(frozen=True, slots=True)
class SimilarDocuments:
    """The documents that resemble a text most. `skipped` is the reason why the text cannot be compared, or None."""

    skipped: str | None
    documents: list[SimilarDocument]


@dataclass(frozen=True, slots=True)
class NewLocation:
    """The present location of a page: the document of its cluster that was last fetched under another URL.

    `relation` relates it to the last document of the queried URL. It is None if both resemble the first document of
    their cluster but not each other, or if the pass kept no sketches to compare.
    """

    url: str
    document: str
    fetched_at: str | None
    relation: str | None
    resemblance: float | None


@dataclass(frozen=True, slots=True)
class Moved:
    """The last document of a URL and the present location of its page.

    `moved` is true if the page was fetched at that location after it was last fetched at this URL.
    """

    url: str
    document: str
    fetched_at: str | None
    moved: bool
    found: NewLocation | None

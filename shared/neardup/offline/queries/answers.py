"""What questions to an offline pass find, as plain values (see `queries`)."""

from dataclasses import dataclass

from neardup.types import PageRef


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A document in a cluster, and its relation to the cluster's first document: "first" if it is that."""

    url: str
    document: str
    fetched_at: str | None
    size: int
    relation: str
    resemblance: float | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of one or more documents. `urls`: of each url the document fetched last, the last of them first."""

    name: str
    size: int
    representative: PageRef
    urls: list[ClusterMember]


@dataclass(frozen=True, slots=True)
class UrlDocument:
    """A document of the url that was asked for."""

    document: str
    fetched_at: str | None
    size: int
    cluster: str
    relation: str
    resemblance: float | None


@dataclass(frozen=True, slots=True)
class Containment:
    """A document in a containment, and how much of the contained one is in the other."""

    url: str
    document: str
    containment: float


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is known of a url: its documents, the last first, their clusters, what contains and is contained in them."""

    url: str
    documents: list[UrlDocument]
    clusters: list[Cluster]
    contained_in: list[Containment]
    contains: list[Containment]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarDocument:
    """A document like a text: "contains" is said where it is in the text, "contained" where the text is in it."""

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
    """The documents most like a text. `skipped`: why it cannot be compared with any."""

    skipped: str | None
    documents: list[SimilarDocument]


@dataclass(frozen=True, slots=True)
class NewLocation:
    """Where a page is now: the document fetched last under another url, and how it relates to the one that was lost.

    `relation` is None where the two resemble the cluster's first document, and each other less; or where the pass kept
    no sketches to tell.
    """

    url: str
    document: str
    fetched_at: str | None
    relation: str | None
    resemblance: float | None


@dataclass(frozen=True, slots=True)
class Moved:
    """A url's last document, and where else its page is. `moved`: it was seen there after it was last seen here."""

    url: str
    document: str
    fetched_at: str | None
    moved: bool
    found: NewLocation | None

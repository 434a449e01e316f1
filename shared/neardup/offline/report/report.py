"""The report of an offline pass: counts, sizes, hosts, and the cost of each phase."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Phase(NamedTuple):
    """A phase of the pass, its duration and the bytes that it wrote.

    `repeated` marks a phase that was already finished before a restart.
    """

    name: str
    seconds: float
    bytes: int
    repeated: bool = False


class Host(NamedTuple):
    """A host, its number of documents, and the number of those that are not the first of their cluster."""

    name: str
    documents: int
    duplicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of one pass. `sizes` counts clusters by size. `hosts` is sorted by duplicates in descending order."""

    engine: str
    signature_version: str
    documents: int
    new_documents: int
    identical: int
    same_text: int
    same_shingles: int
    near: int
    clusters: int
    largest: int
    sizes: dict[int, int]
    pairs: dict[str, int]
    common_keys: dict[str, int]
    edges: int
    contained: int
    overturned: int
    # The clusters that the transitive rule would make from the same edges.
    transitive_clusters: int
    transitive_largest: int
    hosts: list[Host] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    seconds: float = 0.0

"""What an offline pass did: counts, sizes, hosts, and what each phase cost."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Phase(NamedTuple):
    """A step of the pass: how long it took and how many bytes it wrote. `repeated`: it was done before a restart."""

    name: str
    seconds: float
    bytes: int
    repeated: bool = False


class Host(NamedTuple):
    """A host's documents, and how many of them are not the first of their cluster."""

    name: str
    documents: int
    duplicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One pass. `sizes`: how many clusters there are of each size. `hosts`: those with most duplicates first."""

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
    # What the transitive rule would have made of the same edges.
    transitive_clusters: int
    transitive_largest: int
    hosts: list[Host] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    seconds: float = 0.0

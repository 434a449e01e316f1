"""neardup: tells a web crawler whether the page it just fetched is new, a copy, a near-duplicate or contained."""

from neardup.embedded.deduplicator import Deduplicator
from neardup.errors import NeardupError
from neardup.settings import Settings
from neardup.types import DocumentId, Kind, Page, PageRef, Relation, Verdict

__version__ = "0.1.0"

__all__ = [
    "Deduplicator",
    "DocumentId",
    "Kind",
    "NeardupError",
    "Page",
    "PageRef",
    "Relation",
    "Settings",
    "Verdict",
    "__version__",
]

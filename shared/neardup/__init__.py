"""Near-duplicate detection for web crawlers.

The public names are loaded when they are first used (PEP 562): `from neardup import Page` imports neither numba nor the
Kafka client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
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

_MODULES: Final = {
    "Deduplicator": "neardup.embedded.deduplicator",
    "DocumentId": "neardup.types",
    "Kind": "neardup.types",
    "NeardupError": "neardup.errors",
    "Page": "neardup.types",
    "PageRef": "neardup.types",
    "Relation": "neardup.types",
    "Settings": "neardup.settings",
    "Verdict": "neardup.types",
}

# Type checkers see the imports above. With a __getattr__ they would accept every name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

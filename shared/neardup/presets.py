"""Named sets of settings, from cheap to careful. `neardup evaluate --preset` tells what each costs and finds."""

from collections.abc import Mapping
from typing import Any, Final

DEFAULT: Final = "default"

PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    # With bands, fingerprints that differ in a few bits find next to nothing more: equal ones are enough.
    "fast": {"hamming": 0, "bands": "12x10"},
    DEFAULT: {},
    # Finds nearly every pair that the rule would accept, and more that it turns down.
    "thorough": {"bands": "25x5"},
}

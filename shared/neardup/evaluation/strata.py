"""Strata of the pairs in a report: by file, length, language, and same or different host."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.evaluation.measures import UNKNOWN_HOST, Measures

BY_FILE: Final = "file: "
_LENGTHS: Final = ((0, 100), (100, 1000), (1000, None))
"""Ranges of tokens of the shorter page, the end excluded."""


def strata(measures: Measures) -> dict[str, NDArray[np.bool_]]:
    """Return the pairs of each stratum by name. Unknown hosts do not make a stratum, and neither does a single file."""
    found: dict[str, NDArray[np.bool_]] = {}
    sources = np.unique(measures.source)
    if sources.size > 1:
        found |= {BY_FILE + name: measures.source == name for name in sources.tolist()}
    for low, high in _LENGTHS:
        name = f"{low} tokens or more" if high is None else f"{low} to {high - 1} tokens"
        within = (measures.tokens >= low) & (measures.tokens < (np.inf if high is None else high))
        if within.any():
            found[f"length: {name}"] = within
    found |= {f"language: {name}": measures.language == name for name in np.unique(measures.language).tolist()}
    hosts = [name for name in np.unique(measures.host).tolist() if name != UNKNOWN_HOST]
    found |= {f"host: {name}": measures.host == name for name in hosts}
    return found

"""Parts of the pairs that are told apart in a report: by file, length, language, and whether the hosts are the same."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.evaluation.measures import UNKNOWN_HOST, Measures

BY_FILE: Final = "file: "
_LENGTHS: Final = ((0, 100), (100, 1000), (1000, None))
"""Tokens of the shorter page, from and to below."""


def strata(measures: Measures) -> dict[str, NDArray[np.bool_]]:
    """Name → which pairs. What is not known of any pair makes no stratum; nor does one file alone."""
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

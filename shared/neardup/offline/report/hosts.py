"""Documents and duplicates per host."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.report.report import Host
from neardup.util.urls import host_or_url

MOST_HOSTS: Final = 20
"""Maximum number of listed hosts."""


def with_most_duplicates(documents: ColumnStore, duplicates: NDArray[np.bool_]) -> list[Host]:
    """Return the hosts with most duplicates, in descending order."""
    numbers: dict[str, int] = {}
    hosts = np.array(
        [numbers.setdefault(host_or_url(documents.url(row)), len(numbers)) for row in range(len(documents))], np.int64
    )
    total = np.bincount(hosts, minlength=len(numbers))
    found = np.bincount(hosts[duplicates], minlength=len(numbers))
    names = list(numbers)
    listed = sorted(np.flatnonzero(found).tolist(), key=lambda number: (-int(found[number]), names[number]))
    return [Host(names[number], int(total[number]), int(found[number])) for number in listed[:MOST_HOSTS]]

"""The host with the highest share of duplicates, among hosts with many recent pages.

A host whose pages are nearly all duplicates serves the same page for every url (login, consent, not found), is a
mirror, or has a template that dominates the text. Recrawls, which are duplicates of a page with the same url, do not
count.

There are more hosts than fit in memory. The hosts with most pages are kept (Misra & Gries 1982, merged per batch as in
Agarwal et al. 2012): a host with more than one in `_HOSTS` pages of the window is guaranteed to be among them.
"""

import logging
from typing import Final

from neardup import metrics
from neardup.messages.settled import Batch
from neardup.util.urls import host_or_url

_HOSTS: Final = 1000
_WINDOW: Final = 100_000
"""Number of documents after which all counts are halved."""
_NEARLY_ALL: Final = 0.95
"""Share of duplicates from which a host is logged, once. The alert has the same threshold."""

logger = logging.getLogger(__name__)


class _Tally:
    __slots__ = ("duplicates", "pages", "weight")

    def __init__(self) -> None:
        self.weight = self.pages = self.duplicates = 0

    def halve(self) -> None:
        self.weight, self.pages, self.duplicates = self.weight // 2, self.pages // 2, self.duplicates // 2


class HostWatch:
    """The watch over one partition of the documents topic. Its state depends only on the documents.

    The pages of every host are spread over all partitions.
    """

    def __init__(self, partition: int, *, least_pages: int, hosts: int = _HOSTS, window: int = _WINDOW) -> None:
        self._partition = str(partition)
        self._least_pages, self._most, self._window = least_pages, hosts, window
        self._tallies: dict[str, _Tally] = {}
        self._named: set[str] = set()
        self._counted = 0

    def take(self, batch: Batch) -> None:
        """Count the documents of a batch and update the metric."""
        for url, match in zip(batch.documents.url, batch.matches, strict=True):
            if match is None or match.url != url:
                self._count(host_or_url(url), match is not None)
        self._prune()
        if self._counted >= self._window:
            self._counted = 0
            for tally in self._tallies.values():
                tally.halve()
        self._report()

    def worst(self) -> tuple[str, float]:
        """Return the worst host and its share of duplicates, or an empty name and 0 while no host has enough pages."""
        shares = [
            (tally.duplicates / tally.pages, host)
            for host, tally in self._tallies.items()
            if tally.pages >= self._least_pages
        ]
        share, host = max(shares, default=(0.0, ""))
        return host, share

    def close(self) -> None:
        """Withdraw the metric."""
        metrics.withdraw((self._partition,), metrics.HOST_DUPLICATES)

    def _count(self, host: str, is_duplicate: bool) -> None:
        tally = self._tallies.get(host)
        if tally is None:
            tally = self._tallies[host] = _Tally()
        tally.weight += 1
        tally.pages += 1
        tally.duplicates += is_duplicate
        self._counted += 1

    def _prune(self) -> None:
        """Drop hosts with low weights if there are too many hosts.

        The weight of the first host beyond the limit, in descending order, is subtracted from all weights. Hosts that
        reach zero are dropped.
        """
        if len(self._tallies) <= self._most:
            return
        surplus = sorted((tally.weight for tally in self._tallies.values()), reverse=True)[self._most]
        for tally in self._tallies.values():
            tally.weight -= surplus
        self._tallies = {host: tally for host, tally in self._tallies.items() if tally.weight > 0}

    def _report(self) -> None:
        host, share = self.worst()
        metrics.HOST_DUPLICATES.labels(self._partition).set(share)
        if share < _NEARLY_ALL:
            self._named.clear()
        elif host not in self._named:
            self._named.add(host)
            tally = self._tallies[host]
            logger.warning(
                "host %s: of %d recent pages %d are duplicates of other urls", host, tally.pages, tally.duplicates
            )

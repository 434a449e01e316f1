"""Which host loses its pages: the one with the highest share of duplicates among those with many recent pages.

A host whose pages are nearly all duplicates has a wall in front of them (log in, consent, not found), or is a mirror,
or has a template that hides what differs. Recrawls, duplicates with the url of the page itself, do not count.

There are more hosts than memory for them. Kept are those with most pages (Misra & Gries 1982, merged a batch at a time
as in Agarwal et al. 2012): a host that has more than one page in `_HOSTS` of the window is certain to be among them.
"""

import logging
from typing import Final

from neardup import metrics
from neardup.messages.settled import Batch
from neardup.util.urls import host_or_url

_HOSTS: Final = 1000
_WINDOW: Final = 100_000
"""Documents after which everything counts half."""
_NEARLY_ALL: Final = 0.95
"""From this share on a host is named in the log, once; the alert asks for the same."""

logger = logging.getLogger(__name__)


class _Tally:
    __slots__ = ("duplicates", "pages", "weight")

    def __init__(self) -> None:
        self.weight = self.pages = self.duplicates = 0

    def halve(self) -> None:
        self.weight, self.pages, self.duplicates = self.weight // 2, self.pages // 2, self.duplicates // 2


class HostWatch:
    """Of one partition of the documents, each of which has its share of every host. A function of the documents."""

    def __init__(self, partition: int, *, least_pages: int, hosts: int = _HOSTS, window: int = _WINDOW) -> None:
        self._partition = str(partition)
        self._least_pages, self._most, self._window = least_pages, hosts, window
        self._tallies: dict[str, _Tally] = {}
        self._named: set[str] = set()
        self._counted = 0

    def take(self, batch: Batch) -> None:
        """Count these documents and say which host has lost most."""
        for url, match in zip(batch.columns["url"], batch.matches, strict=True):
            if match is None or match.url != url:
                self._count(host_or_url(url), match is not None)
        self._prune()
        if self._counted >= self._window:
            self._counted = 0
            for tally in self._tallies.values():
                tally.halve()
        self._report()

    def worst(self) -> tuple[str, float]:
        """The host and its share of duplicates; no name and 0 while no host has pages enough."""
        shares = [
            (tally.duplicates / tally.pages, host)
            for host, tally in self._tallies.items()
            if tally.pages >= self._least_pages
        ]
        share, host = max(shares, default=(0.0, ""))
        return host, share

    def close(self) -> None:
        """Report nothing any more."""
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
        """Take from all the weight of the first that is one too many: those with no more than it are gone."""
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

"""Slow, obvious twins of what the fingerprint index does. Python integers, no cleverness."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod


def distance(x: int, y: int) -> int:
    return (x ^ y).bit_count()


def permuted(fingerprint: int, order: Sequence[int]) -> int:
    bits = f"{fingerprint:064b}"
    return int("".join(bits[source] for source in order), 2)


def shares_leading(x: int, y: int, leading: int) -> bool:
    return x >> (64 - leading) == y >> (64 - leading) if leading else True


def near(keys: Iterable[int], query: int, leading: int, limit: int, cap: int = 10**9) -> list[tuple[int, int]]:
    """(distance, key) of everything that shares the leading bits and is within the limit; nearest first."""
    found = {(distance(key, query), key) for key in keys if shares_leading(key, query, leading)}
    return sorted(pair for pair in found if pair[0] <= limit)[:cap]


def all_pairs(queries: Sequence[int], fingerprints: Iterable[int], k: int) -> set[tuple[int, int]]:
    """(query, fingerprint) within k."""
    return {(q, f) for f in fingerprints for q in queries if distance(q, f) <= k}


class NaiveSlice:
    """Remembers when each key was last inserted."""

    def __init__(self, leading: int, cap: int = 10**9, ttl: float = 0, epochs: int = 8) -> None:
        self.leading, self.cap = leading, cap
        self.epoch_of: dict[int, int] = {}
        self.ttl, self.epochs, self.epoch = ttl, epochs, 0

    def probe(self, query: int, limit: int) -> list[tuple[int, int]]:
        return near(self.epoch_of, query, self.leading, limit, self.cap)

    def probe_and_insert(self, query: int, limit: int, now: float = 0) -> list[tuple[int, int]]:
        if self.ttl:
            self.epoch = max(self.epoch, int(now // (self.ttl / self.epochs)))
            alive = {key: epoch for key, epoch in self.epoch_of.items() if epoch + self.epochs + 1 > self.epoch}
            self.epoch_of = alive
        found = self.probe(query, limit)
        self.epoch_of[query] = self.epoch
        return found

    def forget(self, key: int) -> bool:
        return self.epoch_of.pop(key, None) is not None


def subset_probability(flips: Sequence[float], subset: Iterable[int]) -> float:
    """p(u, S) of Sood 2011, equation 6."""
    chosen = set(subset)
    return prod(p if number in chosen else 1 - p for number, p in enumerate(flips))


def likely_subsets(flips: Sequence[float], most: int) -> list[tuple[float, tuple[int, ...]]]:
    """Every subset of 1 to `most` bits with its probability, likeliest first."""
    subsets = (s for size in range(1, most + 1) for s in combinations(range(len(flips)), size))
    return sorted(((subset_probability(flips, s), s) for s in subsets), key=lambda pair: -pair[0])

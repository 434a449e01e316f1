"""Bucket tables: exact key → fingerprints, for the bands of a sketch and Broder's features.

The newest pairs are in a dictionary; when there are many they become a sorted run, and runs of similar size are merged.
A key with more fingerprints than the limit is common: it is ignored, as Broder ignores common shingles, and counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.bucketing import bucket_ranges
from neardup.kernels.probing import close_directory, mark_directory
from neardup.runs import directory_bits, zeros

COMMON: Final = 1000
RECENT: Final = 1 << 15
RATIO: Final = 4


@dataclass(frozen=True, slots=True)
class BucketMatches:
    """Which query met which fingerprint in its bucket: sorted by query, then fingerprint; no pair twice."""

    query: NDArray[np.int64]
    fingerprint: NDArray[np.uint64]


@dataclass(slots=True)
class BucketCounts:
    """What a bucket table did, for metrics."""

    probes: int = 0
    inserted: int = 0
    matches: int = 0
    common: int = 0


class BucketTable:
    """Not thread-safe. Inserting a pair again changes nothing."""

    def __init__(self, *, common: int = COMMON, recent: int = RECENT) -> None:
        self.counts = BucketCounts()
        self._common, self._most_recent = common, recent
        self._recent: dict[int, set[int]] = {}
        self._recent_count = 0
        self._runs: list[_PairRun] = []

    def __len__(self) -> int:
        return self._recent_count + sum(run.keys.size for run in self._runs)

    def probe_and_insert(self, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64]) -> BucketMatches:
        """In order: pair i meets the pairs that were there and pairs 0 to i-1 of the batch, then is remembered.

        A bucket that has reached the limit answers nothing and takes nothing more.
        """
        ranges = [run.ranges(keys) for run in self._runs]
        number: list[int] = []
        found: list[int] = []
        for i, (key, fingerprint) in enumerate(zip(keys.tolist(), fingerprints.tolist(), strict=True)):
            recent = self._recent.get(key)
            bucket = set(recent) if recent else set()
            for run, (lows, highs) in zip(self._runs, ranges, strict=True):
                if lows[i] < highs[i]:
                    bucket.update(run.fingerprints[lows[i] : highs[i]].tolist())
            if len(bucket) >= self._common:
                self.counts.common += 1
                continue
            others = sorted(bucket - {fingerprint})
            number += [i] * len(others)
            found += others
            if fingerprint not in bucket:
                self._recent.setdefault(key, set()).add(fingerprint)
                self._recent_count += 1
                self.counts.inserted += 1
        self.counts.probes += keys.size
        self.counts.matches += len(number)
        if self._recent_count >= self._most_recent:
            self._flush()
        return BucketMatches(np.array(number, np.int64), np.array(found, np.uint64))

    def forget(self, fingerprint: int) -> bool:
        """Remove a fingerprint from every bucket; True when it was in one. Reads everything: for operators."""
        self._flush()
        was_there = False
        for number, run in enumerate(self._runs):
            kept = run.fingerprints != np.uint64(fingerprint)
            if not kept.all():
                self._runs[number] = _PairRun(run.keys[kept], run.fingerprints[kept])
                was_there = True
        return was_there

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The arrays and the rest that a snapshot keeps."""
        self._flush()
        arrays: dict[str, NDArray[Any]] = {}
        for number, run in enumerate(self._runs):
            arrays |= {f"{number}/keys": run.keys, f"{number}/fingerprints": run.fingerprints}
        return arrays, {"runs": len(self._runs)}

    def restore(self, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
        """Take over what `parts` gave."""
        self._recent, self._recent_count = {}, 0
        self._runs = [_PairRun(arrays[f"{n}/keys"], arrays[f"{n}/fingerprints"]) for n in range(about["runs"])]

    def _flush(self) -> None:
        if not self._recent_count:
            return
        pairs = [(key, each) for key, bucket in self._recent.items() for each in bucket]
        newest = np.array(pairs, np.uint64)
        self._recent, self._recent_count = {}, 0
        keys, fingerprints = newest[:, 0], newest[:, 1]
        while self._runs and self._runs[-1].keys.size <= RATIO * keys.size:
            older = self._runs.pop()
            keys = np.concatenate([older.keys, keys])
            fingerprints = np.concatenate([older.fingerprints, fingerprints])
        order = np.lexsort((fingerprints, keys))
        self._runs.append(_PairRun(keys[order], fingerprints[order]))


class _PairRun:
    """Pairs sorted by key, then fingerprint, with a directory on the keys' leading bits."""

    def __init__(self, keys: NDArray[np.uint64], fingerprints: NDArray[np.uint64]) -> None:
        self.keys, self.fingerprints = np.ascontiguousarray(keys), np.ascontiguousarray(fingerprints)
        self._bits = directory_bits(max(4, keys.size), 0)
        self._directory = zeros((1 << self._bits) + 1, np.uint32)
        mark_directory(self.keys, 0, keys.size, 0, self._bits, self._directory)
        close_directory(self._directory)

    def ranges(self, queries: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        lows, highs = np.empty(queries.size, np.int64), np.empty(queries.size, np.int64)
        bucket_ranges(self.keys, self._directory, self._bits, queries, lows, highs)
        return lows, highs

"""Candidates of pending documents: the fingerprints that shards have found near each document so far.

In a flood of near-duplicate pages each pending document can have a thousand candidates. The number of candidates held
in memory is therefore limited. Beyond the limit, the candidates of the longest-waiting documents spill to the store.

    N fingerprint                    its candidates, each with the tables that found it
"""

import struct
from collections.abc import Container, Iterable
from typing import Final

import msgpack

from neardup.matching.found_by import Candidates, FoundBy, pack_found_by, unpack_found_by
from neardup.stream.aggregator.store import Store

IN_MEMORY: Final = 1 << 19
"""Maximum number of candidates in memory for all documents together, about 65 MB."""

_PREFIX: Final = b"N"
_WORD: Final = struct.Struct(">Q")


class CandidateStore:
    """Candidates by the fingerprint of the pending document. Changes are written to the store by `flush`.

    `spill` may be called between any two other calls. It stops updating the candidates that `get` returned earlier.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._candidates: dict[int, Candidates] = {}
        self._count = 0
        self._changed: set[int] = set()
        """Fingerprints in memory whose candidates in the store are missing or out of date."""
        self._stored: set[int] = {_WORD.unpack(key[1:])[0] for key, _ in store.scan(_PREFIX)}

    @property
    def in_memory(self) -> int:
        """Number of candidates in memory."""
        return self._count

    def add(self, pairs: Iterable[tuple[int, int]], table: FoundBy, pending: Container[int]) -> None:
        """Add pairs (fingerprint, candidate) that a table found. Pairs of fingerprints not in `pending` are ignored."""
        last, candidates = None, None
        for fingerprint, candidate in pairs:
            # Pairs of the same fingerprint are usually adjacent: look it up once per run.
            if fingerprint != last:
                last, candidates = fingerprint, None
                if fingerprint in pending:
                    candidates = self._load(fingerprint)
                    self._changed.add(fingerprint)
            if candidates is None:
                continue
            if candidate in candidates:
                candidates[candidate] |= table  # type: ignore[assignment]
            else:
                candidates[candidate] = table
                self._count += 1

    def get(self, fingerprint: int) -> Candidates:
        """Return the candidates found so far."""
        known = fingerprint in self._candidates or fingerprint in self._stored
        return self._load(fingerprint) if known else {}

    def remove(self, fingerprint: int) -> None:
        """Drop the candidates of a fingerprint that no pending document has any more."""
        self._count -= len(self._candidates.pop(fingerprint, ()))
        self._changed.discard(fingerprint)
        if fingerprint in self._stored:
            self._stored.remove(fingerprint)
            self._store.delete(_key(fingerprint))

    def spill(self) -> None:
        """Move candidates from memory to the store until at most `IN_MEMORY` are left, oldest fingerprints first."""
        while self._count > IN_MEMORY:
            fingerprint, candidates = next(iter(self._candidates.items()))
            if fingerprint in self._changed:
                self._put(fingerprint, candidates)
                self._changed.remove(fingerprint)
            del self._candidates[fingerprint]
            self._count -= len(candidates)

    def flush(self) -> None:
        """Write changes to the store; they are durable when the store is saved."""
        for fingerprint in self._changed:
            self._put(fingerprint, self._candidates[fingerprint])
        self._changed.clear()

    def _load(self, fingerprint: int) -> Candidates:
        candidates = self._candidates.get(fingerprint)
        if candidates is None:
            candidates = self._candidates[fingerprint] = {}
            packed = self._store.get(_key(fingerprint)) if fingerprint in self._stored else None
            if packed is not None:
                candidates.update((found, unpack_found_by(found_by)) for found, found_by in msgpack.unpackb(packed))
                self._count += len(candidates)
        return candidates

    def _put(self, fingerprint: int, candidates: Candidates) -> None:
        rows = [[candidate, pack_found_by(found_by)] for candidate, found_by in candidates.items()]
        self._store.put(_key(fingerprint), msgpack.packb(rows))
        self._stored.add(fingerprint)


def _key(fingerprint: int) -> bytes:
    return _PREFIX + _WORD.pack(fingerprint)

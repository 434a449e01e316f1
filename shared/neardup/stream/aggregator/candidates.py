"""What shards have found near the documents that wait.

Pages that come in a flood and are all near each other have a thousand others each, for as long as they wait. So only so
many are kept as objects; of the others, those that waited longest for an answer stand in the store alone, packed.

    N fingerprint                    what was found near it so far
"""

import struct
from collections.abc import Container, Iterable
from typing import Final

import msgpack

from neardup.stream.aggregator.store import Store

IN_MEMORY: Final = 1 << 19
"""Fingerprints found, of all documents together: about 65 MB."""

_PREFIX: Final = b"N"
_WORD: Final = struct.Struct(">Q")


class CandidateStore:
    """By the fingerprint of who waits: each fingerprint found, with a bit for every table that found it.

    Saved with `flush`. `trim` may be called at any time: what `of` returned is then no longer kept up to date.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._near: dict[int, dict[int, int]] = {}
        self._count = 0
        self._changed: set[int] = set()
        """Those in memory that the store does not have as they are."""
        self._stored: set[int] = {_WORD.unpack(key[1:])[0] for key, _ in store.scan(_PREFIX)}

    @property
    def in_memory(self) -> int:
        """Fingerprints found that are kept as objects."""
        return self._count

    def note(self, pairs: Iterable[tuple[int, int]], bit: int, waiting: Container[int]) -> None:
        """A table has found the second of each pair near the first, where that is one that waits."""
        last, near = None, None
        for fingerprint, found in pairs:
            # Those of one fingerprint mostly come together.
            if fingerprint != last:
                last, near = fingerprint, None
                if fingerprint in waiting:
                    near = self._opened(fingerprint)
                    self._changed.add(fingerprint)
            if near is None:
                continue
            if found in near:
                near[found] |= bit
            else:
                near[found] = bit
                self._count += 1

    def of(self, fingerprint: int) -> dict[int, int]:
        """All that was found near it so far."""
        known = fingerprint in self._near or fingerprint in self._stored
        return self._opened(fingerprint) if known else {}

    def drop(self, fingerprint: int) -> None:
        """Nobody waits with it any more."""
        self._count -= len(self._near.pop(fingerprint, ()))
        self._changed.discard(fingerprint)
        if fingerprint in self._stored:
            self._stored.remove(fingerprint)
            self._store.delete(_key(fingerprint))

    def trim(self) -> None:
        """Leave to the store what is too much for memory."""
        while self._count > IN_MEMORY:
            fingerprint, near = next(iter(self._near.items()))
            if fingerprint in self._changed:
                self._put(fingerprint, near)
                self._changed.remove(fingerprint)
            del self._near[fingerprint]
            self._count -= len(near)

    def flush(self) -> None:
        """Write what changed into the store, to be saved with it."""
        for fingerprint in self._changed:
            self._put(fingerprint, self._near[fingerprint])
        self._changed.clear()

    def _opened(self, fingerprint: int) -> dict[int, int]:
        near = self._near.get(fingerprint)
        if near is None:
            near = self._near[fingerprint] = {}
            packed = self._store.get(_key(fingerprint)) if fingerprint in self._stored else None
            if packed is not None:
                near.update((found, int.from_bytes(mask, "little")) for found, mask in msgpack.unpackb(packed))
                self._count += len(near)
        return near

    def _put(self, fingerprint: int, near: dict[int, int]) -> None:
        rows = [[found, mask.to_bytes((mask.bit_length() + 7) // 8, "little")] for found, mask in near.items()]
        self._store.put(_key(fingerprint), msgpack.packb(rows))
        self._stored.add(fingerprint)


def _key(fingerprint: int) -> bytes:
    return _PREFIX + _WORD.pack(fingerprint)

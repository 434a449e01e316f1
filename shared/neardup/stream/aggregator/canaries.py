"""Pending canaries of an owner: planted near-copies of pages that measure recall.

A canary takes the same path as a page, but no page can match it. Shards answer its probes without inserting them. Its
id places it after all pages (`DocumentId.is_canary`), so it is never an earlier document. Owners keep it outside the
directory while it is pending; afterwards only the directory's marker remains, so that a repeated registration is
ignored.

    K fingerprint document           a pending canary, packed like a variant in the directory
"""

from typing import Final

import msgpack

from neardup.stream.aggregator.directory import KnownDocument, packed_known, unpacked_known
from neardup.stream.aggregator.keys import DocumentKey, pack_key, unpack_key
from neardup.stream.aggregator.store import Store

_PREFIX: Final = b"K"


class PendingCanaries:
    """All pending canaries of an owner. Call `mark_changed` after changing one; `flush` writes the changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: dict[DocumentKey, KnownDocument] = {}
        self._changed: set[DocumentKey] = set()
        for packed_key, packed in store.scan(_PREFIX):
            key = unpack_key(packed_key[1:])
            self._pending[key] = unpacked_known(key.fingerprint, msgpack.unpackb(packed))

    def __len__(self) -> int:
        return len(self._pending)

    def find(self, key: DocumentKey) -> KnownDocument | None:
        """Return a pending canary, or None."""
        return self._pending.get(key)

    def add(self, known: KnownDocument) -> None:
        """Add a canary."""
        self._pending[known.key] = known
        self.mark_changed(known)

    def mark_changed(self, known: KnownDocument) -> None:
        """Record that a canary must be written again."""
        self._changed.add(known.key)

    def remove(self, known: KnownDocument) -> None:
        """Remove a settled canary."""
        del self._pending[known.key]
        self.mark_changed(known)

    def flush(self) -> None:
        """Write changes to the store; they are durable when the store is saved."""
        for key in self._changed:
            packed_key = _PREFIX + pack_key(*key)
            known = self._pending.get(key)
            if known is None:
                self._store.delete(packed_key)
            else:
                self._store.put(packed_key, msgpack.packb(packed_known(known)))
        self._changed.clear()

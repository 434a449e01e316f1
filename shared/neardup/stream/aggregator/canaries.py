"""Canaries at an owner: planted near-copies of pages, on their way to being found or not.

A canary goes the whole way of a page and leaves nothing behind that a page could meet. Shards answer it and do not
remember it. It stands after all pages (`DocumentId.is_canary`), so no page learns from it. And here it is kept apart
from the directory, for as long as it waits; what stays is the directory's marker that it was seen.

    K fingerprint document           a canary that waits, packed as a variant is
"""

import struct
from typing import Final

import msgpack

from neardup.stream.aggregator.directory import KnownDocument, packed_known, unpacked_known
from neardup.stream.aggregator.pending import DocumentKey
from neardup.stream.aggregator.store import Store
from neardup.types import DocumentId

_PREFIX: Final = b"K"
_PLACE: Final = struct.Struct(">Qqqq")


class Canaries:
    """Those that wait at one owner. Who changes a `KnownDocument` must `touch` it; saved with `flush`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[DocumentKey, KnownDocument] = {}
        self._changed: set[DocumentKey] = set()
        for key, packed in store.scan(_PREFIX):
            fingerprint, *place = _PLACE.unpack(key[1:])
            known = unpacked_known(fingerprint, msgpack.unpackb(packed))
            self._waiting[DocumentKey(fingerprint, DocumentId(*place))] = known

    def __len__(self) -> int:
        return len(self._waiting)

    def find(self, waiting: DocumentKey) -> KnownDocument | None:
        """One that waits."""
        return self._waiting.get(waiting)

    def add(self, known: KnownDocument) -> None:
        """One more."""
        self._waiting[_name(known)] = known
        self.touch(known)

    def touch(self, known: KnownDocument) -> None:
        """Something about it has changed."""
        self._changed.add(_name(known))

    def remove(self, known: KnownDocument) -> None:
        """It waits no more."""
        del self._waiting[_name(known)]
        self.touch(known)

    def flush(self) -> None:
        """Write what changed into the store, to be saved with it."""
        for waiting in self._changed:
            key = _PREFIX + _PLACE.pack(waiting.fingerprint, *waiting.document)
            known = self._waiting.get(waiting)
            if known is None:
                self._store.delete(key)
            else:
                self._store.put(key, msgpack.packb(packed_known(known)))
        self._changed.clear()


def _name(known: KnownDocument) -> DocumentKey:
    return DocumentKey(known.document.fingerprint, known.document.id)

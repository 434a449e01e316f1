"""An owner's directory: fingerprint → the documents that have it.

Documents with equal tokens have equal sketches and equal candidates, so only the first of them, a *variant*, is stored
whole. The others are *copies*, each stored as a marker. A fingerprint keeps only its first few variants in the order of
all pages.

    F fingerprint                    the variants, packed
    D fingerprint document           marker of a copy, a dropped variant, a forgotten document or a canary
    C checksum of the content        the first copy with this content, unless a variant has this content
    U hash of the url, fingerprint, document      finds the documents of a url; one entry per document
    T                                number of documents

Variants in use are held as objects, and packed when they are saved. Memory is limited in bytes instead of entries: a
fingerprint can have many variants, and a url can be long.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgpack
import numpy as np
import xxhash

from neardup.errors import Corrupt, CorruptState, WrongVersion
from neardup.matching.match import Match
from neardup.messages.fields import document_of, optional_text_of, text_of
from neardup.messages.questions import packed_match, unpacked_match
from neardup.messages.seeds import Entry, SeedEntries
from neardup.signatures.packed_sketch import is_packed
from neardup.stream.aggregator.keys import KEY_BYTES, DocumentKey, pack_key, unpack_key
from neardup.stream.aggregator.store import VERSION, Store, peek
from neardup.types import Checksums, Document, DocumentId, Kind

CACHED_BYTES: Final = 96 * 2**20
"""Memory limit for variants, in bytes. Unsaved changes stay in memory even above the limit."""
ENTRY_BYTES: Final = 250
"""Memory of a fingerprint's entry in bytes, without its variants."""
KNOWN_BYTES: Final = 1400
"""Approximate measured memory of a variant in bytes, without its sketch and its url."""

_KINDS: Final = (None, Kind.UNIQUE, Kind.DUPLICATE)
_COUNT_KEY: Final = b"T"


@dataclass(slots=True)
class KnownDocument:
    """A document with its verdict so far. `kind` is None while the document is pending; `match` is its best match."""

    document: Document
    kind: Kind | None = None
    revision: int = 0
    match: Match | None = None

    @property
    def key(self) -> DocumentKey:
        """The document's key in the directory."""
        return DocumentKey(self.document.fingerprint, self.document.id)


class Directory:
    """Typed access to a `Store`. After changing a `KnownDocument`, call `mark_changed` with its fingerprint."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: dict[int, list[KnownDocument]] = {}
        self._changed: set[int] = set()
        """Fingerprints whose variants changed since the last `flush`."""
        self._changed_lately: set[int] = set()
        """Fingerprints whose variants changed since the last `flush_settled`."""
        self.cached_bytes = 0
        """Approximate memory of the entries, in bytes."""
        self._evict_above = CACHED_BYTES
        counted = store.get(_COUNT_KEY)
        self.documents = sum(1 for _ in store.scan(b"U")) if counted is None else int.from_bytes(counted, "big")
        """Number of documents, copies included. Correct if no document is added twice."""

    def variants(self, fingerprint: int) -> list[KnownDocument]:
        """Return the variants of a fingerprint, in any order. `add` and `reduce_to_marker` change the returned list."""
        entry = self._entries.get(fingerprint)
        if entry is None:
            packed = self._store.get(_variants_key(fingerprint))
            entry = [] if packed is None else [unpacked_known(fingerprint, row) for row in msgpack.unpackb(packed)]
            self._entries[fingerprint] = entry
            self.cached_bytes += _bytes_of_entry(entry)
        return entry

    def find(self, fingerprint: int, document: DocumentId) -> KnownDocument | None:
        """Return the variant with this document id, or None."""
        for known in self.variants(fingerprint):
            if known.document.id == document:
                return known
        return None

    def mark_changed(self, fingerprint: int) -> None:
        """Record that the variants of a fingerprint must be written again."""
        self._changed.add(fingerprint)
        self._changed_lately.add(fingerprint)

    def add(self, known: KnownDocument) -> None:
        """Add a variant."""
        fingerprint = known.document.fingerprint
        self.variants(fingerprint).append(known)
        self.cached_bytes += _bytes_of(known)
        self.mark_changed(fingerprint)
        self._index_url(known.document)

    def reduce_to_marker(self, known: KnownDocument) -> None:
        """Replace a variant by a marker, because it is now a copy or exceeds the limit of variants."""
        fingerprint = known.document.fingerprint
        self.variants(fingerprint).remove(known)
        self.cached_bytes -= _bytes_of(known)
        self.mark_changed(fingerprint)
        self.add_marker(fingerprint, known.document.id)

    def add_copy(self, document: Document) -> None:
        """Add a copy, which only gets a marker."""
        self.add_marker(document.fingerprint, document.id)
        self._index_url(document)

    def add_marker(self, fingerprint: int, document: DocumentId) -> None:
        """Mark a document as seen, without its content."""
        self._store.put(_marker_key(fingerprint, document), b"")

    def has_marker(self, fingerprint: int, document: DocumentId) -> bool:
        """Return whether a document was marked as seen."""
        return self._store.get(_marker_key(fingerprint, document)) is not None

    def first_copy_with(self, content: bytes) -> tuple[DocumentId, str] | None:
        """Return (id, url) of the first copy whose content has this checksum, or None."""
        packed = self._store.get(b"C" + content)
        if packed is None:
            return None
        document, url = msgpack.unpackb(packed)
        return DocumentId(*document), url

    def set_first_copy(self, document: Document) -> None:
        """Store a document as the first copy with its content."""
        self._store.put(b"C" + document.checksums.content, msgpack.packb([document.id, document.url]))

    def documents_of_url(self, url: str) -> Iterator[DocumentKey]:
        """Yield every document of a url, and possibly documents of another url with the same hash."""
        prefix = _url_prefix(url)
        for key, _ in self._store.scan(prefix):
            yield unpack_key(key[len(prefix) :])

    def older_than(self, before: int) -> Iterator[tuple[DocumentKey, bytes]]:
        """Yield (document, hash of its url) for every page with a timestamp below `before`, in milliseconds.

        Scans the whole directory.
        """
        for key, _ in self._store.scan(b"U"):
            document_key = unpack_key(key[9:])
            if document_key.document.timestamp < before:
                yield document_key, key[1:9]

    def forget(self, fingerprint: int, document: DocumentId, url_hash: bytes) -> None:
        """Drop a document but keep a marker, so that a repeated registration is ignored."""
        known = self.find(fingerprint, document)
        if known is not None:
            self.reduce_to_marker(known)
        in_index = b"U" + url_hash + pack_key(fingerprint, document)
        if self._store.get(in_index) is not None:
            self._store.delete(in_index)
            self.documents -= 1
        self.add_marker(fingerprint, document)

    def forget_first_copies(self, is_gone: Callable[[DocumentId], bool]) -> None:
        """Drop the first copies for which `is_gone` returns True. Scans all first copies."""
        for key, packed in self._store.scan(b"C"):
            if is_gone(DocumentId(*msgpack.unpackb(packed)[0])):
                self._store.delete(key)

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield (fingerprint, entry) for every flushed entry, as seeds for other directories."""
        for prefix, start in ((b"F", 1), (b"D", 1), (b"U", 9)):
            for key, value in self._store.scan(prefix):
                yield int.from_bytes(key[start : start + 8], "big"), Entry(key, value)
        for key, packed in self._store.scan(b"C"):
            document, url = msgpack.unpackb(packed)
            keys = [each for each in self.documents_of_url(url) if each.document == DocumentId(*document)]
            if not keys:
                raise CorruptState(
                    f"expected {url!r} in the directory, which lists it as the first copy of its content, got no such "
                    "document; delete this owner's state and the log rebuilds it"
                )
            yield keys[0].fingerprint, Entry(key, packed)

    def restore(self, entries: Iterable[Entry]) -> None:
        """Insert entries of another directory. They must have passed `check_seed`.

        An existing entry is kept: its seed was inserted before, and the entry may have changed since then.
        """
        for key, value in entries:
            if key[:1] == b"F":
                fingerprint = int.from_bytes(key[1:], "big")
                if fingerprint in self._changed:
                    continue
                self._evict(fingerprint)
            if self._store.get(key) is None:
                self._store.put(key, value)
                self.documents += key[:1] == b"U"

    def flush(self) -> None:
        """Write changes to the store and enforce the memory limit. Changes are durable when the store is saved."""
        for fingerprint in self._changed:
            self._pack(fingerprint, self._entries[fingerprint])
        self._changed.clear()
        self._changed_lately.clear()
        self._store.put(_COUNT_KEY, self.documents.to_bytes(8, "big"))
        self._evict_above = CACHED_BYTES
        self.evict()

    def flush_settled(self) -> None:
        """Write the changes since the last call, except to fingerprints with pending variants, which will change again.

        Call it after every batch: `flush` then has little left to write during a checkpoint, when every page waits.
        """
        for fingerprint in self._changed_lately:
            entry = self._entries[fingerprint]
            if all(known.kind is not None for known in entry):
                self._pack(fingerprint, entry)
                self._changed.remove(fingerprint)
        self._changed_lately.clear()

    def evict(self) -> None:
        """Enforce the memory limit: evict unchanged entries, oldest first.

        Call it only between messages: a `KnownDocument` obtained before the call may be detached from the directory.
        """
        if self.cached_bytes <= self._evict_above:
            return
        for fingerprint in [each for each in self._entries if each not in self._changed]:
            if self.cached_bytes <= CACHED_BYTES:
                break
            self._evict(fingerprint)
        # Without this margin, the next messages would scan all changed entries again.
        self._evict_above = max(self.cached_bytes, CACHED_BYTES) + CACHED_BYTES // 8

    def _pack(self, fingerprint: int, entry: list[KnownDocument]) -> None:
        if entry:
            packed: bytes = msgpack.packb([packed_known(known) for known in entry])
            self._store.put(_variants_key(fingerprint), packed)
        else:
            self._store.delete(_variants_key(fingerprint))

    def _evict(self, fingerprint: int) -> None:
        self.cached_bytes -= _bytes_of_entry(self._entries.pop(fingerprint, None))

    def _index_url(self, document: Document) -> None:
        self._store.put(_url_prefix(document.url) + pack_key(document.fingerprint, document.id), b"")
        self.documents += 1


def check_seed(seed: SeedEntries, mips: int) -> None:
    """Raise WrongVersion or Corrupt unless a directory of documents with `mips` MIPs values can use these entries."""
    if seed.layout != VERSION:
        raise WrongVersion(
            f"expected directory entries of layout {VERSION}, got {seed.layout}; use one release for `neardup reshard` "
            "and for the services"
        )
    for entry in seed.entries:
        _check_entry(entry, mips)


def _check_entry(entry: Entry, mips: int) -> None:
    key, value = entry
    try:
        match key[:1]:
            case b"F" if len(key) == 9:
                for row in msgpack.unpackb(value):
                    _check_known(unpacked_known(int.from_bytes(key[1:], "big"), row), mips)
            case b"C":
                document, url = msgpack.unpackb(value)
                document_of(document), text_of(url)
            case b"D" if len(key) == 1 + KEY_BYTES and not value:
                pass
            case b"U" if len(key) == 9 + KEY_BYTES and not value:
                pass
            case _:
                raise Corrupt(f"expected the key of a directory entry, got {key[:40]!r}")
    except (ValueError, TypeError, IndexError, msgpack.UnpackException) as error:
        raise Corrupt(f"expected the value of a {key[:1]!r} entry of a directory, got another: {error!r}") from error


def _check_known(known: KnownDocument, mips: int) -> None:
    document, checksums = known.document, known.document.checksums
    document_of([*document.id])
    text_of(document.url)
    optional_text_of(document.fetched_at)
    optional_text_of(document.note)
    sums = (checksums.content, checksums.tokens, checksums.shingles)
    if not all(isinstance(each, bytes) for each in sums) or {type(document.size), type(known.revision)} != {int}:
        raise Corrupt(
            f"expected three checksums as bytes, and size and revision as integers, got {sums} and size "
            f"{document.size!r}"
        )
    if not is_packed(document.sketch, mips):
        raise Corrupt(f"expected a packed sketch with {mips} MIPs values for every document, got another sketch")


def documents_in(state: Path) -> int | None:
    """Return the number of documents in a saved directory; None if it has no count. Raises CorruptState.

    Works while a worker has the directory open.
    """
    counted = peek(state, _COUNT_KEY)
    return None if counted is None else int.from_bytes(counted, "big")


def _bytes_of(known: KnownDocument) -> int:
    # Counts only fields that never change, so that additions and removals cancel out.
    return KNOWN_BYTES + known.document.sketch.nbytes + len(known.document.url)


def _bytes_of_entry(entry: list[KnownDocument] | None) -> int:
    return 0 if entry is None else ENTRY_BYTES + sum(map(_bytes_of, entry))


def url_hash(url: str) -> bytes:
    """Return the eight bytes that stand for a url in the directory's index."""
    digest: bytes = xxhash.xxh3_64_digest(url.encode())
    return digest


def _url_prefix(url: str) -> bytes:
    return b"U" + url_hash(url)


def _variants_key(fingerprint: int) -> bytes:
    return b"F" + fingerprint.to_bytes(8, "big")


def _marker_key(fingerprint: int, document: DocumentId) -> bytes:
    return b"D" + pack_key(fingerprint, document)


def packed_known(known: KnownDocument) -> list[Any]:
    """Return the plain values of a document, without its fingerprint."""
    document, checksums = known.document, known.document.checksums
    return [
        document.id, document.url, document.fetched_at, checksums.content, checksums.tokens, checksums.shingles,
        document.size, document.sketch.tobytes(), document.note,
        _KINDS.index(known.kind), known.revision, packed_match(known.match),
    ]  # fmt: skip


def unpacked_known(fingerprint: int, row: list[Any]) -> KnownDocument:
    """Invert `packed_known`."""
    id_, url, fetched_at, content, tokens, shingles, size, sketch, note, kind, revision, match = row
    document = Document(
        id=DocumentId(*id_),
        url=url,
        fetched_at=fetched_at,
        fingerprint=fingerprint,
        checksums=Checksums(content, tokens, shingles),
        size=size,
        sketch=np.frombuffer(sketch, np.uint64),
        note=note,
    )
    return KnownDocument(document, _KINDS[kind], revision, unpacked_match(match))

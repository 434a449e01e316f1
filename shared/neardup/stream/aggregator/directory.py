"""An owner's directory: fingerprint → the documents that have it.

Documents with the same tokens have the same sketch and the same neighbours, so only the first of them, a *variant*, is
kept whole. The others are *copies*: a marker that they were seen, and nothing more. A fingerprint keeps the first few
variants in the order of all pages.

    F fingerprint                    the variants, packed
    D fingerprint document           marker: a copy, a variant that was dropped, a document that was forgotten, a canary
    C checksum of the content        the first copy with these bytes, where they are not a variant's own
    U hash of the url, fingerprint, document      for finding a url's documents again; each document has one
    T                                how many documents there are

Entries in use are kept as objects and packed when they are saved. How many stay in memory is a matter of bytes: a
fingerprint may have many variants, and a url many letters.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgpack
import numpy as np
import xxhash

from neardup.errors import Corrupt, CorruptState
from neardup.matching.match import Match
from neardup.messages.fields import document_of, optional_text_of, text_of
from neardup.messages.questions import packed_match, unpacked_match
from neardup.messages.seeds import Entry
from neardup.signatures.packed_sketch import is_packed
from neardup.stream.aggregator.store import Store, peek
from neardup.types import Checksums, Document, DocumentId, Kind

CACHED_BYTES: Final = 96 * 2**20
"""Of entries that stay in memory. What changed stays beyond it, until it is saved."""
ENTRY_BYTES: Final = 250
"""Of memory that an entry takes, before its first variant."""
KNOWN_BYTES: Final = 1400
"""Of memory that a variant takes, beside its sketch and its url: about, as measured."""

_KINDS: Final = (None, Kind.UNIQUE, Kind.DUPLICATE)
_COUNT_KEY: Final = b"T"
_PLACE: Final = struct.Struct(">Qqqq")


@dataclass(slots=True)
class KnownDocument:
    """What an owner knows of a document. `kind` is None until it is settled; `match` is the best one so far."""

    document: Document
    kind: Kind | None = None
    revision: int = 0
    match: Match | None = None


class Directory:
    """Typed access to a `Store`. Who changes a `KnownDocument` must `touch` its fingerprint."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: dict[int, list[KnownDocument]] = {}
        self._touched: set[int] = set()
        self._lately: set[int] = set()
        """Those of them that were touched since the last `flush_settled`."""
        self.cached_bytes = 0
        """About what the entries in memory take."""
        self._trim_above = CACHED_BYTES
        counted = store.get(_COUNT_KEY)
        self.documents = sum(1 for _ in store.scan(b"U")) if counted is None else int.from_bytes(counted, "big")
        """How many are remembered, copies included; right as long as none is added twice."""

    def variants(self, fingerprint: int) -> list[KnownDocument]:
        """The variants of a fingerprint, in no order. The list is the directory's own: `add` and `remove` change it."""
        entry = self._entries.get(fingerprint)
        if entry is None:
            packed = self._store.get(_variants_key(fingerprint))
            entry = [] if packed is None else [unpacked_known(fingerprint, row) for row in msgpack.unpackb(packed)]
            self._entries[fingerprint] = entry
            self.cached_bytes += _bytes_of_entry(entry)
        return entry

    def find(self, fingerprint: int, document: DocumentId) -> KnownDocument | None:
        """A variant by its document's id."""
        for known in self.variants(fingerprint):
            if known.document.id == document:
                return known
        return None

    def touch(self, fingerprint: int) -> None:
        """Something about a variant of this fingerprint has changed."""
        self._touched.add(fingerprint)
        self._lately.add(fingerprint)

    def add(self, known: KnownDocument) -> None:
        """A new variant."""
        fingerprint = known.document.fingerprint
        self.variants(fingerprint).append(known)
        self.cached_bytes += _bytes_of(known)
        self.touch(fingerprint)
        self._index_url(known.document)

    def demote(self, known: KnownDocument) -> None:
        """A variant that is now a mere copy, or one too many: only the marker stays."""
        fingerprint = known.document.fingerprint
        self.variants(fingerprint).remove(known)
        self.cached_bytes -= _bytes_of(known)
        self.touch(fingerprint)
        self.mark(fingerprint, known.document.id)

    def add_copy(self, document: Document) -> None:
        """Remember that this copy was seen."""
        self.mark(document.fingerprint, document.id)
        self._index_url(document)

    def mark(self, fingerprint: int, document: DocumentId) -> None:
        """Remember that it was seen, and nothing else of it."""
        self._store.put(_marker_key(fingerprint, document), b"")

    def was_seen(self, fingerprint: int, document: DocumentId) -> bool:
        """Whether there is a marker for this document."""
        return self._store.get(_marker_key(fingerprint, document)) is not None

    def first_with_content(self, content: bytes) -> tuple[DocumentId, str] | None:
        """(id, url) of the first copy with these bytes."""
        packed = self._store.get(b"C" + content)
        if packed is None:
            return None
        place, url = msgpack.unpackb(packed)
        return DocumentId(*place), url

    def set_first_with_content(self, document: Document) -> None:
        """Remember the first copy with its bytes."""
        self._store.put(b"C" + document.checksums.content, msgpack.packb([document.id, document.url]))

    def of_url(self, url: str) -> Iterator[tuple[int, DocumentId]]:
        """(fingerprint, id) of every document of a url, and perhaps of one whose url has the same hash."""
        prefix = _url_prefix(url)
        for key, _ in self._store.scan(prefix):
            yield _place(key[len(prefix) :])

    def older_than(self, before: int) -> Iterator[tuple[int, DocumentId, bytes]]:
        """(fingerprint, id, hash of the url) of every document whose page came before this time. Reads everything."""
        for key, _ in self._store.scan(b"U"):
            fingerprint, document = _place(key[9:])
            if document.timestamp < before:
                yield fingerprint, document, key[1:9]

    def forget(self, fingerprint: int, document: DocumentId, url_hash: bytes) -> None:
        """Drop what is known; the marker stays, so that a repeated registration does not bring it back."""
        known = self.find(fingerprint, document)
        if known is not None:
            self.demote(known)
        in_index = b"U" + url_hash + _PLACE.pack(fingerprint, *document)
        if self._store.get(in_index) is not None:
            self._store.delete(in_index)
            self.documents -= 1
        self.mark(fingerprint, document)

    def forget_contents(self, is_gone: Callable[[DocumentId], bool]) -> None:
        """Drop such documents from the firsts by content. Reads them all."""
        for key, packed in self._store.scan(b"C"):
            if is_gone(DocumentId(*msgpack.unpackb(packed)[0])):
                self._store.delete(key)

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """(fingerprint that it belongs to, entry) of everything that is flushed, as seeds of other directories."""
        for prefix, start in ((b"F", 1), (b"D", 1), (b"U", 9)):
            for key, value in self._store.scan(prefix):
                yield int.from_bytes(key[start : start + 8], "big"), Entry(key, value)
        for key, packed in self._store.scan(b"C"):
            place, url = msgpack.unpackb(packed)
            mine = [fingerprint for fingerprint, document in self.of_url(url) if document == DocumentId(*place)]
            if not mine:
                raise CorruptState(f"expected {url!r} in the directory, which has it as the first of its content")
            yield mine[0], Entry(key, packed)

    def restore(self, entries: Iterable[Entry]) -> None:
        """Take entries over from another directory. They must have passed `check_entry`.

        What is here already stays: it is the same, said again, and may know more by now.
        """
        for key, value in entries:
            if key[:1] == b"F":
                fingerprint = int.from_bytes(key[1:], "big")
                if fingerprint in self._touched:
                    continue
                self._let_go(fingerprint)
            if self._store.get(key) is None:
                self._store.put(key, value)
                self.documents += key[:1] == b"U"

    def flush(self) -> None:
        """Pack what was touched into the store, to be saved with it, and let go of what is too much for memory."""
        for fingerprint in self._touched:
            self._pack(fingerprint, self._entries[fingerprint])
        self._touched.clear()
        self._lately.clear()
        self._store.put(_COUNT_KEY, self.documents.to_bytes(8, "big"))
        self._trim_above = CACHED_BYTES
        self.trim()

    def flush_settled(self) -> None:
        """The same for what was touched since the last call and waits for nothing: it will hardly be touched again.

        After every batch, so that little is left for the `flush` of a checkpoint, during which every page waits.
        """
        for fingerprint in self._lately:
            entry = self._entries[fingerprint]
            if all(known.kind is not None for known in entry):
                self._pack(fingerprint, entry)
                self._touched.remove(fingerprint)
        self._lately.clear()

    def trim(self) -> None:
        """Let go of what is too much for memory, oldest first, but for what changed since the last `flush`.

        Only between messages: a `KnownDocument` that somebody still holds is then no longer the directory's.
        """
        if self.cached_bytes <= self._trim_above:
            return
        for fingerprint in [each for each in self._entries if each not in self._touched]:
            if self.cached_bytes <= CACHED_BYTES:
                break
            self._let_go(fingerprint)
        # Not to look through all that cannot go yet after every message.
        self._trim_above = max(self.cached_bytes, CACHED_BYTES) + CACHED_BYTES // 8

    def _pack(self, fingerprint: int, entry: list[KnownDocument]) -> None:
        if entry:
            packed: bytes = msgpack.packb([packed_known(known) for known in entry])
            self._store.put(_variants_key(fingerprint), packed)
        else:
            self._store.delete(_variants_key(fingerprint))

    def _let_go(self, fingerprint: int) -> None:
        self.cached_bytes -= _bytes_of_entry(self._entries.pop(fingerprint, None))

    def _index_url(self, document: Document) -> None:
        place = _PLACE.pack(document.fingerprint, *document.id)
        self._store.put(_url_prefix(document.url) + place, b"")
        self.documents += 1


def check_entry(entry: Entry, mips: int) -> None:
    """Raise Corrupt unless a directory can use this entry, of documents with so many MIPs values."""
    key, value = entry
    try:
        match key[:1]:
            case b"F" if len(key) == 9:
                for row in msgpack.unpackb(value):
                    _check_known(unpacked_known(int.from_bytes(key[1:], "big"), row), mips)
            case b"C":
                place, url = msgpack.unpackb(value)
                document_of(place), text_of(url)
            case b"D" if len(key) == 1 + _PLACE.size and not value:
                pass
            case b"U" if len(key) == 9 + _PLACE.size and not value:
                pass
            case _:
                raise Corrupt(f"expected an entry of a directory, got the key {key[:40]!r}")
    except (ValueError, TypeError, IndexError, msgpack.UnpackException) as error:
        raise Corrupt(f"expected an entry of a directory, got {key[:1]!r} with another value: {error!r}") from error


def _check_known(known: KnownDocument, mips: int) -> None:
    document, checksums = known.document, known.document.checksums
    document_of([*document.id])
    text_of(document.url)
    optional_text_of(document.fetched_at)
    optional_text_of(document.note)
    sums = (checksums.content, checksums.tokens, checksums.shingles)
    if not all(isinstance(each, bytes) for each in sums) or {type(document.size), type(known.revision)} != {int}:
        raise Corrupt(f"expected three checksums, a size and a revision, got {sums}, {document.size!r}")
    if not is_packed(document.sketch, mips):
        raise Corrupt(f"expected a packed sketch with {mips} MIPs values for every document")


def documents_in(state: Path) -> int | None:
    """How many a saved directory remembers; None where it does not say. May be open elsewhere. Raises CorruptState."""
    counted = peek(state, _COUNT_KEY)
    return None if counted is None else int.from_bytes(counted, "big")


def _bytes_of(known: KnownDocument) -> int:
    """Nothing that changes while it is known."""
    return KNOWN_BYTES + known.document.sketch.nbytes + len(known.document.url)


def _bytes_of_entry(entry: list[KnownDocument] | None) -> int:
    return 0 if entry is None else ENTRY_BYTES + sum(map(_bytes_of, entry))


def url_hash(url: str) -> bytes:
    """Eight bytes that stand for a url in the directory's index."""
    digest: bytes = xxhash.xxh3_64_digest(url.encode())
    return digest


def _url_prefix(url: str) -> bytes:
    return b"U" + url_hash(url)


def _variants_key(fingerprint: int) -> bytes:
    return b"F" + fingerprint.to_bytes(8, "big")


def _marker_key(fingerprint: int, document: DocumentId) -> bytes:
    return b"D" + _PLACE.pack(fingerprint, *document)


def _place(packed: bytes) -> tuple[int, DocumentId]:
    fingerprint, *document = _PLACE.unpack(packed)
    return fingerprint, DocumentId(*document)


def packed_known(known: KnownDocument) -> list[Any]:
    """Plain values, without the fingerprint."""
    document, checksums = known.document, known.document.checksums
    return [
        document.id, document.url, document.fetched_at, checksums.content, checksums.tokens, checksums.shingles,
        document.size, document.sketch.tobytes(), document.note,
        _KINDS.index(known.kind), known.revision, packed_match(known.match),
    ]  # fmt: skip


def unpacked_known(fingerprint: int, row: list[Any]) -> KnownDocument:
    """The same back."""
    place, url, fetched_at, content, tokens, shingles, size, sketch, note, kind, revision, match = row
    document = Document(
        id=DocumentId(*place),
        url=url,
        fetched_at=fetched_at,
        fingerprint=fingerprint,
        checksums=Checksums(content, tokens, shingles),
        size=size,
        sketch=np.frombuffer(sketch, np.uint64),
        note=note,
    )
    return KnownDocument(document, _KINDS[kind], revision, unpacked_match(match))

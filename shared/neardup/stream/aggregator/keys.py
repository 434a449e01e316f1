"""Keys of documents in an owner's directory, and their binary layout in the store."""

import struct
from typing import Final, NamedTuple

from neardup.types import DocumentId

_LAYOUT: Final = struct.Struct(">Qqqq")

KEY_BYTES: Final = _LAYOUT.size


class DocumentKey(NamedTuple):
    """A document's key in the directory: its fingerprint and its id."""

    fingerprint: int
    document: DocumentId


def pack_key(fingerprint: int, document: DocumentId) -> bytes:
    """Pack the fingerprint and the three numbers of the id, big-endian."""
    return _LAYOUT.pack(fingerprint, *document)


def unpack_key(packed: bytes) -> DocumentKey:
    """Invert `pack_key`."""
    fingerprint, *document = _LAYOUT.unpack(packed)
    return DocumentKey(fingerprint, DocumentId(*document))

"""Registrations: documents on their way from the featurizer to their owners, a batch to a message."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from neardup import wire
from neardup.errors import Corrupt
from neardup.types import Document, DocumentId

CHECKSUM_BYTES: Final = 16
_BATCH_BYTES: Final = 512 * 1024


def owner_of(checksum: bytes, owners: int) -> int:
    """The inbox partition that owns every document with this checksum."""
    return int.from_bytes(checksum[:8], "little") % owners


def write_registrations(documents: Sequence[Document]) -> Iterator[bytes]:
    """Messages for one owner, each at most about 512 KB."""
    start = size = 0
    for end, document in enumerate(documents):
        size += len(document.url.encode()) + len((document.fetched_at or "").encode()) + 80
        if size > _BATCH_BYTES:
            yield _message(documents[start : end + 1])
            start, size = end + 1, 0
    if start < len(documents):
        yield _message(documents[start:])


def read_registrations(value: bytes | None) -> list[Document]:
    """The documents of a message, in order. Raises WireError."""
    body = wire.decode(value, "registrations")
    try:
        return _documents(body)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Corrupt(f"expected the columns of registrations, got {sorted(body)}") from error


def _message(documents: Sequence[Document]) -> bytes:
    checksums = b"".join(document.checksum for document in documents)
    return wire.encode(
        "registrations",
        {
            "id": np.array([document.id for document in documents], np.int64),
            "checksum": np.frombuffer(checksums, np.uint8).reshape(-1, CHECKSUM_BYTES),
            "size": np.array([document.size for document in documents], np.int64),
            "url": [document.url for document in documents],
            "fetched_at": [document.fetched_at for document in documents],
        },
    )


def _documents(body: dict[str, Any]) -> list[Document]:
    ids, checksums = body["id"], body["checksum"]
    if ids.shape[1] != 3 or checksums.shape[1] != CHECKSUM_BYTES or checksums.dtype != np.uint8:
        raise Corrupt(f"expected 3 and {CHECKSUM_BYTES} columns, got {ids.shape} and {checksums.shape}")
    sizes, urls, times = body["size"], body["url"], body["fetched_at"]
    if ids.dtype != np.int64 or sizes.dtype != np.int64 or sizes.ndim != 1:
        raise Corrupt(f"expected int64 ids and sizes, got {ids.dtype} and {sizes.dtype} {sizes.shape}")
    if not all(isinstance(url, str) for url in urls) or not all(t is None or isinstance(t, str) for t in times):
        raise Corrupt("expected urls and times of text")
    columns = zip(ids.tolist(), checksums, body["size"].tolist(), body["url"], body["fetched_at"], strict=True)
    return [
        Document(DocumentId(*place), str(url), fetched_at, checksum.tobytes(), size)
        for place, checksum, size, url, fetched_at in columns
    ]

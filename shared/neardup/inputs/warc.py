"""WARC files, plain or gzip: successful responses with text. Items have their record numbers, from 0.

All other records are skipped: requests, metadata, redirects, error pages, images, scripts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from neardup.errors import InvalidPage
from neardup.inputs.http_body import decoded_body
from neardup.inputs.source import MAX_ITEM_BYTES, Item, Source, unreadable_rest
from neardup.messages.pages import MAX_FIELD, page_from_fields
from neardup.text.extraction import is_text
from neardup.types import Page

_PARTS_OF_PAGES: Final = ("text/css", "text/javascript", "application/javascript", "application/x-javascript")


class WarcSource(Source):
    """The pages of one file. A damaged page is rejected; reading ends where record boundaries are lost."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.bytes_total = path.stat().st_size
        self.bytes_read = 0
        self._path = path

    def items(self, after: int = -1) -> Iterator[Item]:
        number = -1
        try:
            # fastwarc decompresses itself and needs a seekable file.
            with self._path.open("rb") as file:
                # Decode bodies separately, because an error in one would end fastwarc's iteration.
                for number, record in enumerate(ArchiveIterator(file, record_types=WarcRecordType.any_type)):
                    self.bytes_read = file.tell()
                    if number > after and record.record_type == WarcRecordType.response:
                        yield from _items_of(self.name, number, record)
        except OSError as error:
            if number + 1 > after:
                yield unreadable_rest(self.name, number + 1, f"expected a WARC record: {error}")


def _items_of(source: str, number: int, record: WarcRecord) -> Iterator[Item]:
    """Yield at most one item."""
    headers = record.http_headers
    status = headers.status_code if headers is not None else None
    if headers is None or not isinstance(status, int):
        yield Item(source, number, rejected="expected an HTTP response with a status, got another response")
        return
    content_type = (headers.get("Content-Type") or "").strip()
    if not 200 <= status <= 299 or not _is_page(content_type):
        return
    size = record.content_length
    if size > MAX_ITEM_BYTES:
        yield Item(source, number, rejected=f"expected records of at most {MAX_ITEM_BYTES} bytes, got {size}")
        return
    body = record.reader.read()
    try:
        if len(body) < size:
            raise InvalidPage(f"expected a body of {size} bytes, got {len(body)}: the file is truncated")
        sent, compressed = headers.get("Transfer-Encoding") or "", headers.get("Content-Encoding") or ""
        page = _page(record, decoded_body(body, sent, compressed, MAX_ITEM_BYTES), content_type)
    except InvalidPage as error:
        yield Item(source, number, rejected=str(error))
        return
    yield Item(source, number, page=page)


def _is_page(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return not media_type or (is_text(media_type) and media_type not in _PARTS_OF_PAGES)


def _page(record: WarcRecord, body: bytes, content_type: str) -> Page:
    return page_from_fields(
        {
            "url": (record.headers.get("WARC-Target-URI") or "").strip("<> "),
            "html": body,
            "fetched_at": record.headers.get("WARC-Date"),
            "content_type": content_type[:MAX_FIELD] or None,
        }
    )

"""Selection of the source for an input: by its name for files, by its first byte for standard input."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, Final

from neardup.errors import InputError
from neardup.inputs.folder import DEFAULT_PREFIX, TYPES, FolderSource
from neardup.inputs.json_lines import read_json_lines
from neardup.inputs.msgpack_maps import read_msgpack_maps
from neardup.inputs.parquet import ParquetSource
from neardup.inputs.source import Source
from neardup.inputs.standard_input import read_by_first_byte
from neardup.inputs.stream_source import Reader, StreamSource
from neardup.inputs.warc import WarcSource

STANDARD_INPUT: Final = "-"

_STREAMS: Final[dict[str, Reader]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json_lines,
    ".msgpack": read_msgpack_maps,
}
_COMPRESSED: Final = ".gz"
_WARC: Final = ".warc"
_PARQUET: Final = ".parquet"


def open_input(name: str, *, url_prefix: str = DEFAULT_PREFIX, stdin: BinaryIO | None = None) -> Source:
    """Open the source for one argument of a command. `url_prefix` applies to pages from folders.

    Raises InputError if the file does not exist or its name does not identify the format.
    """
    if name == STANDARD_INPUT:
        given = stdin if stdin is not None else sys.stdin.buffer
        return StreamSource(name, None, lambda: nullcontext(given), read_by_first_byte)
    path = Path(name)
    suffix = Path(path.name.lower().removesuffix(_COMPRESSED)).suffix
    try:
        if path.is_dir() or suffix in TYPES:
            path.stat()
            return FolderSource(name, path, url_prefix)
        if suffix == _WARC:
            return WarcSource(name, path)
        if suffix == _PARQUET:
            return ParquetSource(name, path)
        if suffix in _STREAMS:
            return StreamSource(name, path.stat().st_size, lambda: path.open("rb", buffering=0), _STREAMS[suffix])
    except OSError as error:
        raise InputError(f"{name}: expected a readable file or folder, got: {error.strerror}") from error
    known = ", ".join([*_STREAMS, _WARC, _PARQUET, *TYPES])
    raise InputError(f"{name}: expected a folder, - for standard input, or a name that ends in {known} (or .gz)")

"""The column store: documents of a corpus as memory-mapped columns, the input of an offline pass.

Rows are numbered in the order in which they were imported and keep their numbers when more are added. The order among
all pages is that of the ids. Each document is stored once, however often the corpus repeats it.

    <directory>/gathered.json      number of rows, source files, signature version, checksums
    <directory>/<column>           little-endian values; text and sketches also have a column of end positions

Bytes of a column beyond the size that gathered.json records belong to an unfinished import and are overwritten.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow
from numpy.typing import NDArray

from neardup.errors import CorruptState, WrongState
from neardup.matching.match import RELATIONS
from neardup.messages.forgotten import NOTHING, Forgotten
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.offline.corpus.document_ids import DocumentIdSet
from neardup.offline.corpus.forgetting import ForgottenIds, ids_of, orphaned_sketches, with_inherited_sketches
from neardup.types import DocumentId
from neardup.util.atomic_file import write_text

FILE: Final = "gathered.json"
VERSION: Final = 2
UNIQUE: Final = -1
"""Relation of a document that the stream called unique."""

_FIXED: Final = {
    "id": ("<i8", 3),
    "fingerprint": ("<u8", 1),
    "checksums": ("<u8", 6),
    "size": ("<i8", 1),
    "relation": ("i1", 1),
    "match": ("<i8", 3),
}
_VARIABLE: Final = ("url", "fetched_at", "sketch")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of gathered.json."""

    rows: int = 0
    signature_version: str = ""
    files: tuple[CorpusFile, ...] = ()
    ends: tuple[int, ...] = (0,) * len(_VARIABLE)
    checksums: dict[str, int] = field(default_factory=dict)
    """CRC-32 of each file."""

    def sizes(self) -> dict[str, int]:
        """Return the size of each file in bytes."""
        ends = dict(zip(_VARIABLE, self.ends, strict=True))
        return {
            **{name: self.rows * width * np.dtype(dtype).itemsize for name, (dtype, width) in _FIXED.items()},
            **{f"{name}.end": 8 * self.rows for name in _VARIABLE},
            **{"url": ends["url"], "fetched_at": ends["fetched_at"], "sketch": 8 * ends["sketch"]},
        }


class ColumnStore:
    """The columns in a directory at the time of opening. Raises StateError if the files cannot be used.

    `id` (n, 3), `fingerprint`, `checksums` (n, 3 levels, 2 words) and `size` describe the documents. `relation` (an
    index into RELATIONS, or UNIQUE) and `match` (n, 3) are the verdict of the stream. `words` holds all sketches;
    `starts` (n + 1) holds the start of each sketch in `words`, and the end of the last.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.manifest = _load(directory / FILE)
        self.id = self._fixed("id").reshape(-1, 3)
        self.fingerprint = self._fixed("fingerprint")
        self.checksums = self._fixed("checksums").reshape(-1, 3, 2)
        self.size = self._fixed("size")
        self.relation = self._fixed("relation")
        self.match = self._fixed("match").reshape(-1, 3)
        self.starts = self._starts("sketch")
        self.words = self._mapped("sketch", "<u8", int(self.starts[-1]))

    def __len__(self) -> int:
        return self.manifest.rows

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Row numbers in the order of all pages."""
        return np.lexsort((self.id[:, 2], self.id[:, 1], self.id[:, 0]))

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """Position of each row in the order of all pages."""
        rank = np.empty(len(self), np.int64)
        rank[self.order] = np.arange(len(self))
        return rank

    def verify(self) -> None:
        """Read every file and compare its checksum. Raises CorruptState."""
        for name, size in self.manifest.sizes().items():
            expected, got = self.manifest.checksums.get(name, 0), zlib.crc32(self._mapped(name, "u1", size).data)
            if got != expected:
                path = self._directory / name
                raise CorruptState(f"{path}: expected checksum {expected:08x}, got {got:08x}; run again with --full")

    def document(self, row: int) -> DocumentId:
        """Return the id of a row."""
        return DocumentId(*self.id[row].tolist())

    def sketch(self, row: int) -> NDArray[np.uint64]:
        """Return the packed sketch of a row, empty where an earlier document has the same tokens."""
        return self.words[self.starts[row] : self.starts[row + 1]]

    def url(self, row: int) -> str:
        """Return the URL of a row."""
        return self._text("url", row)

    def fetched_at(self, row: int) -> str | None:
        """Return the fetch time of a row as the crawler gave it."""
        return self._text("fetched_at", row) or None

    def _text(self, name: str, row: int) -> str:
        starts, data = self._texts[name]
        return bytes(data[starts[row] : starts[row + 1]]).decode()

    @cached_property
    def _texts(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.uint8]]]:
        found = {}
        for name in ("url", "fetched_at"):
            starts = self._starts(name)
            found[name] = (starts, self._mapped(name, "u1", int(starts[-1])))
        return found

    def _fixed(self, name: str) -> NDArray[Any]:
        dtype, width = _FIXED[name]
        return self._mapped(name, dtype, self.manifest.rows * width)

    def _starts(self, name: str) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(1, np.int64), self._mapped(f"{name}.end", "<i8", self.manifest.rows)])

    def _mapped(self, name: str, dtype: str, count: int) -> NDArray[Any]:
        path, need = self._directory / name, count * np.dtype(dtype).itemsize
        if not need:
            return np.empty(0, dtype)
        if not path.exists() or path.stat().st_size < need:
            raise CorruptState(f"{path}: expected {need} bytes, got fewer; delete {self._directory} to rebuild it")
        # Viewed as a plain array, because slicing a memmap object is ten times slower.
        return np.memmap(path, dtype, "r", shape=(count,)).view(np.ndarray)


def gather(
    corpus: Corpus,
    directory: Path,
    progress: Callable[[int, int], None] = lambda done, of: None,
    forgotten: Forgotten = NOTHING,
) -> ColumnStore:
    """Import files that are new in the corpus, except documents that are already stored or forgotten.

    Documents that were imported before they were forgotten stay. `progress` receives the number of files done and the
    number of all files. Raises WrongState when a file has a different signature version than the files before it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    before = ColumnStore(directory)
    imported = set(before.manifest.files)
    new = [file for file in corpus.files() if file not in imported]
    if not new:
        return before
    known, forgotten_ids = DocumentIdSet(before.id), ForgottenIds(forgotten)
    orphaned = orphaned_sketches(corpus, new, forgotten_ids)
    signature = before.manifest.signature_version
    with _ColumnWriter(directory, before.manifest) as writer:
        for number, file in enumerate(new):
            found = corpus.signature_version(file)
            if signature and found != signature:
                raise WrongState(
                    f"{file.name}: expected signatures {signature}, got {found}: use a separate corpus for each version"
                )
            signature = found
            for batch in corpus.read(file):
                writer.add(with_inherited_sketches(_drop_known(_drop_forgotten(batch, forgotten_ids), known), orphaned))
            progress(number + 1, len(new))
        writer.commit(signature, (*before.manifest.files, *new))
    return ColumnStore(directory)


class _ColumnWriter:
    """The files of the columns, opened for appending after the last committed byte."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self._directory, self._rows = directory, manifest.rows
        self._ends = dict(zip(_VARIABLE, manifest.ends, strict=True))
        self._checksums = dict(manifest.checksums)
        sizes = manifest.sizes()
        self._files = {name: (directory / name).open("r+b" if (directory / name).exists() else "w+b") for name in sizes}
        for name, size in sizes.items():
            self._files[name].truncate(size)
            self._files[name].seek(size)

    def __enter__(self) -> "_ColumnWriter":
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, batch: pyarrow.RecordBatch) -> None:
        """Append rows of a corpus file."""
        column = {name: batch.column(name) for name in batch.schema.names}
        matches = [_numbers(column[f"match_{name}"].fill_null(-1)) for name in ("timestamp", "partition", "offset")]
        relations = {str(relation): place for place, relation in enumerate(RELATIONS)}
        codes = [relations.get(relation, UNIQUE) for relation in column["relation"].to_pylist()]
        levels = [column[name].to_pylist() for name in ("content", "tokens", "shingles")]
        self._append("id", ids_of(batch))
        self._append("fingerprint", _numbers(column["fingerprint"]))
        self._write("checksums", b"".join(part for three in zip(*levels, strict=True) for part in three))
        self._append("size", _numbers(column["size"]))
        self._append("relation", np.array(codes, np.int8))
        self._append("match", np.stack(matches, axis=1))
        self._append_variable("url", [text.encode() for text in column["url"].to_pylist()], 1)
        self._append_variable("fetched_at", [(text or "").encode() for text in column["fetched_at"].to_pylist()], 1)
        self._append_variable("sketch", column["sketch"].to_pylist(), 8)
        self._rows += len(batch)

    def commit(self, signature: str, files: tuple[CorpusFile, ...]) -> None:
        """Sync the files and write the manifest, which makes the rows part of the store."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        body = {
            "version": VERSION,
            "rows": self._rows,
            "signature_version": signature,
            "files": files,
            "ends": [self._ends[name] for name in _VARIABLE],
            "checksums": self._checksums,
        }
        write_text(self._directory / FILE, json.dumps(body))

    def _append(self, name: str, values: NDArray[Any]) -> None:
        self._write(name, np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes())

    def _append_variable(self, name: str, values: Iterable[bytes], unit: int) -> None:
        values = list(values)
        ends = self._ends[name] + np.cumsum([len(value) // unit for value in values], dtype=np.int64)
        self._append(f"{name}.end", ends)
        self._write(name, b"".join(values))
        if values:
            self._ends[name] = int(ends[-1])

    def _write(self, name: str, data: bytes) -> None:
        self._files[name].write(data)
        self._checksums[name] = zlib.crc32(data, self._checksums.get(name, 0))


def _drop_forgotten(batch: pyarrow.RecordBatch, forgotten_ids: ForgottenIds) -> pyarrow.RecordBatch:
    return batch.filter(pyarrow.array(~forgotten_ids.contains(ids_of(batch)))) if forgotten_ids else batch


def _drop_known(batch: pyarrow.RecordBatch, known: DocumentIdSet) -> pyarrow.RecordBatch:
    """Return the rows whose ids are new, and add these ids to the set."""
    rows = known.add_new(ids_of(batch))
    return batch if len(rows) == len(batch) else batch.take(pyarrow.array(rows))


def _numbers(column: pyarrow.Array) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return numbers


def _load(path: Path) -> Manifest:
    if not path.exists():
        return Manifest()
    try:
        body = json.loads(path.read_text())
        version = body.pop("version")
        if version != VERSION:
            raise WrongState(f"{path}: expected version {VERSION}, got {version}; run again with --full")
        files = tuple(CorpusFile(*each) for each in body.pop("files"))
        return Manifest(**{**body, "files": files, "ends": tuple(body["ends"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorruptState(
            f"{path}: expected the manifest of a column store, got: {error!r}; run again with --full"
        ) from error

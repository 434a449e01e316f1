"""The corpus: settled documents as Parquet files, for the offline pass and for whoever reads Parquet.

A file holds what one partition of the documents topic carried from one offset to another, and its name says so: written
again, it is replaced. Its root is a folder, or any other place that fsspec knows. Numbers are signed, as Parquet's
readers on the JVM want them: a fingerprint is the 64 bits of its int64.

A document may still be in several files: the stream may say it again after a crash. Its id is what tells.

What was forgotten meanwhile is told by files of another kind, named alike: orders to leave documents out.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Final, NamedTuple, TypeVar

import fsspec
import numpy as np
import pyarrow
import pyarrow.parquet
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from neardup.errors import CorruptState, StateUnavailable, WrongState
from neardup.messages.document_columns import CHECKSUM_LEVELS, DocumentColumns
from neardup.messages.forgotten import Forgotten, together
from neardup.messages.settled import Batch
from neardup.signatures.checksums import CHECKSUM_BYTES
from neardup.util.atomic_file import sync_directory, sync_file

VERSION: Final = "1"
_VERSION_KEY: Final = b"neardup.corpus"
_SIGNATURE_KEY: Final = b"neardup.signature"
_CHECKSUM: Final = pyarrow.binary(CHECKSUM_BYTES)
_ERRORS: Final = (pyarrow.ArrowException, OSError, ValueError)

SCHEMA: Final = pyarrow.schema(
    {
        # The document's id, and its place in the order of all pages.
        "timestamp": pyarrow.int64(),
        "partition": pyarrow.int64(),
        "offset": pyarrow.int64(),
        "url": pyarrow.string(),
        "fetched_at": pyarrow.string(),
        "fingerprint": pyarrow.int64(),
        # Broder's three levels of identity.
        "content": _CHECKSUM,
        "tokens": _CHECKSUM,
        "shingles": _CHECKSUM,
        "size": pyarrow.int64(),
        # Packed, little-endian (`packed_sketch`); empty where an earlier document has the same tokens.
        "sketch": pyarrow.binary(),
        "note": pyarrow.string(),
        # How and of which document it was settled as a duplicate; null: unique.
        "relation": pyarrow.string(),
        "match_timestamp": pyarrow.int64(),
        "match_partition": pyarrow.int64(),
        "match_offset": pyarrow.int64(),
    }
)

FORGOTTEN_SCHEMA: Final = pyarrow.schema([SCHEMA.field(name) for name in ("timestamp", "partition", "offset")])


class CorpusFile(NamedTuple):
    """What a file covers: a partition of the documents topic, from the first offset to the last."""

    partition: int
    first: int
    last: int

    @property
    def name(self) -> str:
        """Sorts as the numbers do."""
        return f"{self.kind()}-{self.partition:05d}-{self.first:015d}-{self.last:015d}.parquet"

    @classmethod
    def kind(cls) -> str:
        """How names begin."""
        return "documents"


class ForgottenFile(CorpusFile):
    """The same, of a file that says what was forgotten."""

    @classmethod
    def kind(cls) -> str:
        return "forgotten"


_File = TypeVar("_File", bound=CorpusFile)


class Corpus:
    """The files under a root: a path, or an address with a protocol of fsspec's. May block; raises StateError."""

    def __init__(self, root: str) -> None:
        self._system, self._root = fsspec.core.url_to_fs(root)

    def files(self) -> list[CorpusFile]:
        """Those with documents, by partition and offset."""
        return self._files(CorpusFile)

    def end(self, partition: int) -> int:
        """The offset after the last one that a file of either kind covers."""
        files = [*self.files(), *self._files(ForgottenFile)]
        return max((each.last + 1 for each in files if each.partition == partition), default=0)

    def forgotten(self) -> Forgotten:
        """What the files say is to be left out. Takes 24 bytes a document."""
        found = []
        for file in self._files(ForgottenFile):
            with self._open_file(file) as parquet:
                table = parquet.read()
            columns = [table.column(name).to_numpy() for name in FORGOTTEN_SCHEMA.names]
            found.append(Forgotten(np.stack(columns, axis=1)))
        return together(found)

    def _files(self, kind: type[_File]) -> list[_File]:
        if not self._system.exists(self._root):
            return []
        named = re.compile(rf"{kind.kind()}-(\d+)-(\d+)-(\d+)\.parquet")
        names = (each.rsplit("/", 1)[-1] for each in self._system.ls(self._root, detail=False, refresh=True))
        return sorted(kind(*map(int, found.groups())) for name in names if (found := named.fullmatch(name)))

    def prepare(self, file: CorpusFile, batches: Sequence[Batch]) -> None:
        """Write a file that is not yet part of the corpus."""
        (signature,) = {batch.signature_version for batch in batches}
        table = pyarrow.concat_tables(table_of(batch) for batch in batches)
        self._write(file, table.replace_schema_metadata({_VERSION_KEY: VERSION, _SIGNATURE_KEY: signature}))

    def prepare_forgotten(self, file: ForgottenFile, forgotten: Forgotten) -> None:
        """The same for a file that says what was forgotten."""
        columns = [pyarrow.array(np.ascontiguousarray(column)) for column in forgotten.documents.T]
        table = pyarrow.Table.from_arrays(columns, schema=FORGOTTEN_SCHEMA)
        self._write(file, table.replace_schema_metadata({_VERSION_KEY: VERSION}))

    def _write(self, file: CorpusFile, table: pyarrow.Table) -> None:
        self._system.makedirs(self._root, exist_ok=True)
        with self._system.open(self._staging_path(file), "wb") as stream:
            # Sketches and checksums are random bytes: a dictionary of them has no use.
            pyarrow.parquet.write_table(
                table, stream, compression="zstd", use_dictionary=["relation"], write_page_checksum=True
            )
            if isinstance(self._system, LocalFileSystem):
                # The offset is committed when it is published: until then it must be on the disk.
                sync_file(stream)

    def publish(self, file: CorpusFile) -> None:
        """Make a prepared file part of the corpus. Raises StateUnavailable when somebody has removed it."""
        try:
            self._system.mv(self._staging_path(file), f"{self._root}/{file.name}")
        except FileNotFoundError as error:
            raise StateUnavailable(
                f"{self._staging_path(file)}: expected the prepared file, but it no longer exists: another worker has "
                "taken over the partition and writes these documents; restart this worker"
            ) from error
        if isinstance(self._system, LocalFileSystem):
            sync_directory(self._root)

    def discard_prepared(self, partition: int) -> None:
        """Remove what was prepared for a partition, by a worker that is gone, and never published."""
        for kind in (CorpusFile, ForgottenFile):
            start = self._staging_path(kind(partition, 0, 0)).rsplit("-", 2)[0]
            for path in self._system.glob(f"{start}-*.new"):
                self._system.rm_file(path)

    def _staging_path(self, file: CorpusFile) -> str:
        return f"{self._root}/.{file.name}.new"

    def read(self, file: CorpusFile, columns: Sequence[str] = tuple(SCHEMA.names)) -> Iterator[pyarrow.RecordBatch]:
        """The rows of a file, some thousands at a time. Raises StateError when it is not a file of a corpus."""
        with self._open_file(file) as parquet:
            yield from parquet.iter_batches(1 << 14, columns=list(columns))

    def signature_version(self, file: CorpusFile) -> str:
        """The one of all sketches in a file."""
        with self._open_file(file) as parquet:
            return str(parquet.schema_arrow.metadata[_SIGNATURE_KEY].decode())

    def documents(self, file: CorpusFile) -> int:
        """Rows of a file. Raises StateError."""
        with self._open_file(file) as parquet:
            return int(parquet.metadata.num_rows)

    @contextmanager
    def _open_file(self, file: CorpusFile) -> Iterator[pyarrow.parquet.ParquetFile]:
        path = f"{self._root}/{file.name}"
        schema = FORGOTTEN_SCHEMA if isinstance(file, ForgottenFile) else SCHEMA
        try:
            with self._system.open(path, "rb") as stream, _parquet(stream) as parquet:
                _check(path, parquet, schema)
                yield parquet
        except _ERRORS as error:
            raise _corrupt_file(path, error) from error


def _check(path: str, parquet: pyarrow.parquet.ParquetFile, schema: pyarrow.Schema) -> None:
    found = parquet.schema_arrow.metadata or {}
    version: str = found.get(_VERSION_KEY, b"").decode()
    if version != VERSION or (schema is SCHEMA and not found.get(_SIGNATURE_KEY)):
        raise WrongState(f"{path}: expected version {VERSION} of a corpus, got {version or 'none'}")
    missing = set(schema.names) - set(parquet.schema_arrow.names)
    if missing:
        raise CorruptState(f"{path}: expected the columns of a corpus, {', '.join(sorted(missing))} are missing")


def _parquet(source: IO[bytes]) -> pyarrow.parquet.ParquetFile:
    """Raises, when it is read, where a page is not as it was written."""
    return pyarrow.parquet.ParquetFile(source, page_checksum_verification=True)


def _corrupt_file(path: str, error: Exception) -> CorruptState:
    return CorruptState(
        f"{path}: expected a file of a corpus: {error}; delete all files of its partition, and the recluster worker, "
        "when it is started again, writes them anew from the log"
    )


def table_of(batch: Batch) -> pyarrow.Table:
    """Return the documents of a message as rows of the corpus."""
    documents = batch.documents
    places = [None if match is None else match.id for match in batch.matches]
    arrays = [
        *(pyarrow.array(np.ascontiguousarray(documents.id[:, field])) for field in range(3)),
        pyarrow.array(documents.url, pyarrow.string()),
        pyarrow.array(documents.fetched_at, pyarrow.string()),
        pyarrow.array(documents.fingerprint.view(np.int64)),
        *(_checksums(documents.checksum(level)) for level in range(CHECKSUM_LEVELS)),
        pyarrow.array(documents.size),
        _sketches(documents),
        pyarrow.array(documents.note, pyarrow.string()),
        pyarrow.array([None if match is None else str(match.relation) for match in batch.matches], pyarrow.string()),
        *(pyarrow.array([place and place[field] for place in places], pyarrow.int64()) for field in range(3)),
    ]
    return pyarrow.Table.from_arrays(arrays, schema=SCHEMA)


def _checksums(level: NDArray[np.uint8]) -> pyarrow.Array:
    buffers = [None, pyarrow.py_buffer(level.tobytes())]
    return pyarrow.FixedSizeBinaryArray.from_buffers(_CHECKSUM, len(level), buffers)


def _sketches(documents: DocumentColumns) -> pyarrow.Array:
    words = documents.sketch.astype("<u8", copy=False)
    ends = np.concatenate([[0], 8 * documents.sketch_ends]).astype(np.int32)
    buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(words.tobytes())]
    return pyarrow.BinaryArray.from_buffers(pyarrow.binary(), len(documents), buffers)

"""The corpus: judged documents in Parquet files, for the offline pass and for other readers of Parquet.

A file holds the documents that one partition of the documents topic carried between two offsets, which its name
records; writing the same range again replaces the file. The root is a local folder or any address that fsspec supports.
Integers are signed because Parquet readers on the JVM expect that: a fingerprint is the 64 bits of its int64.

A document may be in several files because the stream may repeat it after a crash; its id identifies it.

Forget orders are stored in files of a second kind with names of the same form. They list documents that readers must
leave out.
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
        # Id of the document and its position in the order of all pages.
        "timestamp": pyarrow.int64(),
        "partition": pyarrow.int64(),
        "offset": pyarrow.int64(),
        "url": pyarrow.string(),
        "fetched_at": pyarrow.string(),
        "fingerprint": pyarrow.int64(),
        # Checksums on Broder's three levels of identity.
        "content": _CHECKSUM,
        "tokens": _CHECKSUM,
        "shingles": _CHECKSUM,
        "size": pyarrow.int64(),
        # Packed, little-endian (`packed_sketch`); empty where an earlier document has the same tokens.
        "sketch": pyarrow.binary(),
        "note": pyarrow.string(),
        # Verdict of the stream: relation to and id of the matched document; null for unique documents.
        "relation": pyarrow.string(),
        "match_timestamp": pyarrow.int64(),
        "match_partition": pyarrow.int64(),
        "match_offset": pyarrow.int64(),
    }
)

FORGOTTEN_SCHEMA: Final = pyarrow.schema([SCHEMA.field(name) for name in ("timestamp", "partition", "offset")])


class CorpusFile(NamedTuple):
    """The range of offsets that a file of documents covers in a partition of the documents topic."""

    partition: int
    first: int
    last: int

    @property
    def name(self) -> str:
        """File name. Names sort like the numbers."""
        return f"{self.kind()}-{self.partition:05d}-{self.first:015d}-{self.last:015d}.parquet"

    @classmethod
    def kind(cls) -> str:
        """Return the prefix of the name."""
        return "documents"


class ForgottenFile(CorpusFile):
    """The range of offsets that a file of forget orders covers."""

    @classmethod
    def kind(cls) -> str:
        return "forgotten"


_File = TypeVar("_File", bound=CorpusFile)


class Corpus:
    """The files under a root, a path or an fsspec address. Methods may block and raise StateError."""

    def __init__(self, root: str) -> None:
        self._system, self._root = fsspec.core.url_to_fs(root)

    def files(self) -> list[CorpusFile]:
        """Return the files of documents, sorted by partition and offset."""
        return self._files(CorpusFile)

    def end(self, partition: int) -> int:
        """Return the offset after the last offset that a file of either kind covers."""
        files = [*self.files(), *self._files(ForgottenFile)]
        return max((each.last + 1 for each in files if each.partition == partition), default=0)

    def forgotten(self) -> Forgotten:
        """Read all forget orders, 24 bytes of memory per forgotten document."""
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
        """Stage a file of documents. All batches must have the same signature version."""
        (signature,) = {batch.signature_version for batch in batches}
        table = pyarrow.concat_tables(table_of(batch) for batch in batches)
        self._write(file, table.replace_schema_metadata({_VERSION_KEY: VERSION, _SIGNATURE_KEY: signature}))

    def prepare_forgotten(self, file: ForgottenFile, forgotten: Forgotten) -> None:
        """Stage a file of forget orders."""
        columns = [pyarrow.array(np.ascontiguousarray(column)) for column in forgotten.documents.T]
        table = pyarrow.Table.from_arrays(columns, schema=FORGOTTEN_SCHEMA)
        self._write(file, table.replace_schema_metadata({_VERSION_KEY: VERSION}))

    def _write(self, file: CorpusFile, table: pyarrow.Table) -> None:
        self._system.makedirs(self._root, exist_ok=True)
        with self._system.open(self._staging_path(file), "wb") as stream:
            # Sketches and checksums are random bytes, which dictionary encoding would only enlarge.
            pyarrow.parquet.write_table(
                table, stream, compression="zstd", use_dictionary=["relation"], write_page_checksum=True
            )
            if isinstance(self._system, LocalFileSystem):
                # The offset is committed after publishing, so the content must be durable now.
                sync_file(stream)

    def publish(self, file: CorpusFile) -> None:
        """Move a staged file into the corpus. Raises StateUnavailable if it was removed."""
        try:
            self._system.mv(self._staging_path(file), f"{self._root}/{file.name}")
        except FileNotFoundError as error:
            raise StateUnavailable(
                f"{self._staging_path(file)}: expected the staged file, got none: another worker has taken over the "
                "partition and writes these documents; restart this worker"
            ) from error
        if isinstance(self._system, LocalFileSystem):
            sync_directory(self._root)

    def discard_prepared(self, partition: int) -> None:
        """Remove staged files of a partition that an earlier worker did not publish."""
        for kind in (CorpusFile, ForgottenFile):
            start = self._staging_path(kind(partition, 0, 0)).rsplit("-", 2)[0]
            for path in self._system.glob(f"{start}-*.new"):
                self._system.rm_file(path)

    def _staging_path(self, file: CorpusFile) -> str:
        return f"{self._root}/.{file.name}.new"

    def read(self, file: CorpusFile, columns: Sequence[str] = tuple(SCHEMA.names)) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of a file in batches. Raises StateError if it is not a corpus file."""
        with self._open_file(file) as parquet:
            yield from parquet.iter_batches(1 << 14, columns=list(columns))

    def signature_version(self, file: CorpusFile) -> str:
        """Return the signature version of all sketches in a file."""
        with self._open_file(file) as parquet:
            return str(parquet.schema_arrow.metadata[_SIGNATURE_KEY].decode())

    def documents(self, file: CorpusFile) -> int:
        """Return the number of rows of a file. Raises StateError."""
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
        raise WrongState(
            f"{path}: expected version {VERSION} of a corpus, got {version or 'none'}; use the release that wrote it"
        )
    missing = set(schema.names) - set(parquet.schema_arrow.names)
    if missing:
        raise CorruptState(
            f"{path}: expected the columns of a corpus, got a file without {', '.join(sorted(missing))}; restore it "
            "from a copy"
        )


def _parquet(source: IO[bytes]) -> pyarrow.parquet.ParquetFile:
    """Open a file that verifies the checksum of each page as it is read."""
    return pyarrow.parquet.ParquetFile(source, page_checksum_verification=True)


def _corrupt_file(path: str, error: Exception) -> CorruptState:
    return CorruptState(
        f"{path}: expected a file of a corpus, got: {error}; delete all files of its partition and restart the "
        "recluster worker, which writes them again from the log"
    )


def table_of(batch: Batch) -> pyarrow.Table:
    """Convert a batch into rows of the corpus."""
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

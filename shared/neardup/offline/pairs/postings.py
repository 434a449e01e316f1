"""Postings on disk: (key, row) sorted by key, so that rows with a common key are adjacent.

    <directory>/postings.json     kind of keys, number of rows, starts of partitions, checksum
    <directory>/postings-<rows>   little-endian words in partitions (see `kernels.offline.postings`)

New rows are sorted and then merged with the old postings into a new file. The new file becomes valid when postings.json
names it, which happens after the file is durable: a crash leaves the old postings, and repeating the call gives the
same result.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from neardup.errors import CorruptState, WrongState
from neardup.kernels.common.merging import merge_step
from neardup.kernels.common.radix import sort_words
from neardup.kernels.offline.postings import PARTITIONS, count_partitions, divide, find
from neardup.offline.corpus.columns import ColumnStore
from neardup.util.atomic_file import write_text
from neardup.util.parallel import CORES

FILE: Final = "postings.json"
VERSION: Final = 3
BLOCK: Final = 1 << 13
"""Number of rows whose keys a thread computes at once."""
_PART: Final = "postings.part-"
_T = TypeVar("_T")


class Keys(NamedTuple):
    """Keys of some rows, one row after the other, and the number of keys of each row."""

    keys: NDArray[np.uint64]
    sizes: NDArray[np.int64]


KeysOf = Callable[[ColumnStore, NDArray[np.int64]], Keys]
"""(documents, rows) -> keys of the rows. Called from several threads, so it should release the GIL."""


class PostingsRun(NamedTuple):
    """Sorted postings in partitions. `starts` has the start of each partition and the end of the last partition."""

    words: NDArray[np.uint64]
    starts: NDArray[np.int64]

    def partition(self, number: int) -> NDArray[np.uint64]:
        """Return the postings of a partition."""
        return self.words[self.starts[number] : self.starts[number + 1]]


class Postings:
    """Postings of one kind of keys in a directory. Raises StateError if the files cannot be used.

    `about` identifies the kind of keys and its parameters. Postings with a different `about` are rebuilt.
    """

    def __init__(self, directory: Path, about: str) -> None:
        self._directory, self._about = directory, about
        self.rows = self._checksum = 0
        self._run = PostingsRun(np.empty(0, np.uint64), np.zeros(PARTITIONS + 1, np.int64))
        self._load()

    def partition(self, number: int) -> NDArray[np.uint64]:
        """Return the postings of a partition, sorted."""
        return self._run.partition(number)

    def rows_with(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (index into `keys`, row) of all rows that have one of the keys, compared by 40 bits."""
        found: tuple[NDArray[np.int64], NDArray[np.int64]] = find(self._run.words, self._run.starts, keys)
        return found

    @contextmanager
    def extended(
        self,
        documents: ColumnStore,
        kept: NDArray[np.bool_],
        keys_of: KeysOf,
        most_keys: NDArray[np.int64],
        memory_bytes: int,
    ) -> Iterator[None]:
        """Extend the postings by rows that are new since the last call, except rows that are not in `kept`.

        The new postings are available in the body of the `with` statement and become permanent if the body succeeds.
        They are written to disk while the body runs. `most_keys` has an upper bound for the number of keys of each row.
        Memory is bounded by `memory_bytes` as long as all postings together are at most 64 times as large.
        """
        if self.rows > len(documents):
            raise WrongState(
                f"{self._directory}: expected postings of at most {len(documents)} rows, got {self.rows}; delete it "
                "and the next pass rebuilds it"
            )
        self._verify()
        if self.rows == len(documents):
            yield
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        for path in self._directory.glob(f"{_PART}*"):
            # Remove files that a crash left, because this call may write fewer files.
            path.unlink()
        beside = self._directory / "postings.new"
        with ThreadPoolExecutor(CORES) as pool:
            new, spilled = self._new_runs(documents, kept, keys_of, most_keys, memory_bytes, pool)
            runs = [run for run in (self._run, *new) if run.words.size]
            starts: NDArray[np.int64] = np.sum([run.starts for run in (self._run, *new)], axis=0)
            # A single run in memory can be used while it is being written.
            alone = len(runs) == 1 and not spilled
            if not alone:
                _write_merged(beside, runs, starts, pool)
        for path in spilled:
            path.unlink()
        before = self._run
        self._run = runs[0] if alone else PostingsRun(_mapped(beside, int(starts[-1])), starts)
        del new, runs
        try:
            with ThreadPoolExecutor(1) as pool:
                on_disk = pool.submit(_make_durable, beside, self._run.words, written=not alone)
                yield
                checksum = on_disk.result()
        except BaseException:
            self._run = before
            raise
        self._finish(beside, len(documents), starts, checksum)

    def _new_runs(
        self,
        documents: ColumnStore,
        kept: NDArray[np.bool_],
        keys_of: KeysOf,
        most_keys: NDArray[np.int64],
        memory_bytes: int,
        pool: ThreadPoolExecutor,
    ) -> tuple[list[PostingsRun], list[Path]]:
        """Return sorted runs of the new rows, and the files that hold them if they do not fit in memory."""
        runs: list[PostingsRun] = []
        spilled: list[Path] = []
        chunks = list(_chunks(most_keys, self.rows, memory_bytes // 32))
        for number, (first, last) in enumerate(chunks):
            run = _sorted(documents, first + np.flatnonzero(kept[first:last]), keys_of, pool)
            if len(chunks) > 1:
                spilled.append(self._directory / f"{_PART}{number}")
                run.words.tofile(spilled[-1])
                run = PostingsRun(_mapped(spilled[-1], run.words.size), run.starts)
            runs.append(run)
        return runs, spilled

    def _finish(self, beside: Path, rows: int, starts: NDArray[np.int64], checksum: int) -> None:
        beside.replace(self._directory / f"postings-{rows}")
        body = {
            "version": VERSION, "about": self._about, "rows": rows, "starts": starts.tolist(), "checksum": checksum,
        }  # fmt: skip
        write_text(self._directory / FILE, json.dumps(body))
        self._load()
        for path in self._directory.glob("postings-*"):
            if path.name != f"postings-{rows}":
                path.unlink()

    def _load(self) -> None:
        path = self._directory / FILE
        if not path.exists():
            return
        try:
            text = path.read_text()
            body = json.loads(text)
            if body["version"] != VERSION:
                raise WrongState(
                    f"{path}: expected version {VERSION}, got {body['version']}; delete its directory and the next "
                    "pass rebuilds it"
                )
            about, rows, starts = str(body["about"]), int(body["rows"]), np.array(body["starts"], np.int64)
            checksum = int(body["checksum"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptState(
                f"{path}: expected postings, got: {error!r}; delete {self._directory} and the next pass rebuilds it"
            ) from error
        if about != self._about:
            return
        data = self._directory / f"postings-{rows}"
        if not data.exists() and path.read_text() != text:
            # A pass has replaced the postings since the manifest was read.
            self._load()
            return
        self.rows, self._checksum = rows, checksum
        self._run = PostingsRun(_mapped(data, int(starts[-1])), starts)

    def _verify(self) -> None:
        """Compare the checksum of all postings. A pass reads all of them anyway. Raises CorruptState."""
        got = zlib.crc32(np.ascontiguousarray(self._run.words).data)
        if got != self._checksum:
            path = self._directory / f"postings-{self.rows}"
            raise CorruptState(
                f"{path}: expected checksum {self._checksum:08x}, got {got:08x}; delete {self._directory} and the next "
                "pass rebuilds it"
            )


def _mapped(path: Path, count: int) -> NDArray[np.uint64]:
    if not count:
        return np.empty(0, np.uint64)
    if not path.exists() or path.stat().st_size != 8 * count:
        raise CorruptState(
            f"{path}: expected {8 * count} bytes of postings, got another size; delete {path.parent} and the next pass "
            "rebuilds it"
        )
    return np.memmap(path, "<u8", "r", shape=(count,))


def _chunks(most_keys: NDArray[np.int64], first: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that have at most `most` keys together, or that consist of one row."""
    ends = np.cumsum(most_keys)
    while first < ends.size:
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + most, "right")), first + 1)
        yield first, last
        first = last


def _sorted(documents: ColumnStore, rows: NDArray[np.int64], keys_of: KeysOf, pool: ThreadPoolExecutor) -> PostingsRun:
    """Return the sorted postings of some rows."""
    blocks = [rows[start : start + BLOCK] for start in range(0, rows.size, BLOCK)]
    keyed = list(pool.map(partial(keys_of, documents), blocks))
    counts = np.array([count_partitions(keys) for keys, _ in keyed], np.int64).reshape(len(blocks), PARTITIONS)
    starts = np.array(list(accumulate(counts.sum(axis=0).tolist(), initial=0)), np.int64)
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    words = np.empty(starts[-1], np.uint64)
    run = PostingsRun(words, starts)

    def divide_block(number: int) -> None:
        keys, sizes = keyed[number]
        divide(keys, sizes, blocks[number], places[number], words)

    def sort_partition(number: int) -> None:
        part = run.partition(number)
        # Rows are already in order and the sort is stable, so it is enough to sort by the key.
        sort_words(part, np.empty_like(part), 32, 64)

    list(pool.map(divide_block, range(len(blocks))))
    list(pool.map(sort_partition, range(PARTITIONS)))
    return run


def _write_merged(path: Path, runs: list[PostingsRun], starts: NDArray[np.int64], pool: ThreadPoolExecutor) -> None:
    """Merge the runs into one file with these starts of partitions. The file is not synced."""
    with path.open("wb") as file:

        def write_partition(number: int) -> None:
            part = _merged_partition(runs, number).astype("<u8", copy=False).data.cast("B")
            at = 8 * int(starts[number])
            while part:
                done = os.pwrite(file.fileno(), part, at)
                part, at = part[done:], at + done

        if runs:
            list(pool.map(write_partition, range(PARTITIONS)))


def _make_durable(path: Path, words: NDArray[np.uint64], *, written: bool) -> int:
    """Sync a file of these words, after writing it if necessary. Return the checksum."""
    data = np.ascontiguousarray(words).astype("<u8", copy=False).data
    with path.open("r+b" if written else "wb") as file:
        if not written:
            file.write(data)
            file.flush()
        os.fsync(file.fileno())
    return zlib.crc32(data)


def _merged_partition(runs: list[PostingsRun], number: int) -> NDArray[np.uint64]:
    """Merge one partition of all runs."""

    def merge_two(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> NDArray[np.uint64]:
        both = np.empty(one.size + other.size, np.uint64)
        merge_step(one, None, other, None, (0, 0), both, None, both.size)
        return both

    return merge_pairwise([run.partition(number) for run in runs], merge_two)


def merge_pairwise(parts: Sequence[_T], merge_two: Callable[[_T, _T], _T]) -> _T:
    """Merge n parts in pairs until one is left, in log2(n) passes over the data (Broder 1997)."""
    while len(parts) > 1:
        parts = [merge_two(*parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]

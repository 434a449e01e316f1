"""Postings on disk: which rows have which keys, sorted by key, so that rows with a key in common stand together.

    <directory>/postings.json     whose keys, of how many rows, which file has them, and its checksum
    <directory>/postings-<rows>   little-endian words, partition after partition (see `kernels.postings`)

Rows that come later are sorted by themselves and merged in. A file is written beside and named by postings.json when it
is on the disk: a crash leaves what there was before, and the same call then ends the same.
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
"""Rows whose keys a thread makes at once."""
_PART: Final = "postings.part-"
_T = TypeVar("_T")


class Keys(NamedTuple):
    """The keys of some rows, one row after the other, and how many each has."""

    keys: NDArray[np.uint64]
    sizes: NDArray[np.int64]


KeysOf = Callable[[ColumnStore, NDArray[np.int64]], Keys]
"""(documents, rows) -> their keys. Best without the GIL: threads call it side by side."""


class PostingsRun(NamedTuple):
    """Postings in partitions, each sorted; `starts` says where each one starts, and where the last one ends."""

    words: NDArray[np.uint64]
    starts: NDArray[np.int64]

    def partition(self, number: int) -> NDArray[np.uint64]:
        """Its postings."""
        return self.words[self.starts[number] : self.starts[number + 1]]


class Postings:
    """The postings of one kind of keys in a directory. Raises StateError if what lies there cannot be used.

    `about` names the kind and the choices behind it: what was kept under another name is made anew.
    """

    def __init__(self, directory: Path, about: str) -> None:
        self._directory, self._about = directory, about
        self.rows = self._checksum = 0
        self._run = PostingsRun(np.empty(0, np.uint64), np.zeros(PARTITIONS + 1, np.int64))
        self._load()

    def partition(self, number: int) -> NDArray[np.uint64]:
        """The postings of a partition, sorted."""
        return self._run.partition(number)

    def rows_with(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(place in `keys`, row) of all rows that have one of these keys, by 40 bits of it."""
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
        """Take in the rows that came since the last time, those that are kept: what is left out now stays out.

        They are there for the body, and stay if it ends well: the disk writes them while the body works. `most_keys`
        says how many keys each row has at most. Memory is bounded by `memory_bytes` as long as all postings are not 64
        times as much.
        """
        if self.rows > len(documents):
            raise WrongState(
                f"{self._directory}: expected postings of at most {len(documents)} rows, got {self.rows}; delete it"
            )
        self._verify()
        if self.rows == len(documents):
            yield
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        for path in self._directory.glob(f"{_PART}*"):
            # Left by a crash, perhaps more of them than there will be now.
            path.unlink()
        beside = self._directory / "postings.new"
        with ThreadPoolExecutor(CORES) as pool:
            new, spilled = self._new_runs(documents, kept, keys_of, most_keys, memory_bytes, pool)
            runs = [run for run in (self._run, *new) if run.words.size]
            starts: NDArray[np.int64] = np.sum([run.starts for run in (self._run, *new)], axis=0)
            # What is in memory anyhow can be worked with while it is written.
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
        """The new rows, as many at once as fit; if that is not all, in these files."""
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
                raise WrongState(f"{path}: expected version {VERSION}, got {body['version']}")
            about, rows, starts = str(body["about"]), int(body["rows"]), np.array(body["starts"], np.int64)
            checksum = int(body["checksum"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptState(f"{path}: expected postings: {error!r}; delete {self._directory}") from error
        if about != self._about:
            return
        data = self._directory / f"postings-{rows}"
        if not data.exists() and path.read_text() != text:
            # Replaced by a pass since the manifest was read.
            self._load()
            return
        self.rows, self._checksum = rows, checksum
        self._run = PostingsRun(_mapped(data, int(starts[-1])), starts)

    def _verify(self) -> None:
        """Once a pass, which reads all of it anyway. Raises CorruptState."""
        got = zlib.crc32(np.ascontiguousarray(self._run.words).data)
        if got != self._checksum:
            path = self._directory / f"postings-{self.rows}"
            raise CorruptState(
                f"{path}: expected checksum {self._checksum:08x}, got {got:08x}; delete {self._directory}"
            )


def _mapped(path: Path, count: int) -> NDArray[np.uint64]:
    if not count:
        return np.empty(0, np.uint64)
    if not path.exists() or path.stat().st_size != 8 * count:
        raise CorruptState(f"{path}: expected {8 * count} bytes of postings; delete {path.parent}")
    return np.memmap(path, "<u8", "r", shape=(count,))


def _chunks(most_keys: NDArray[np.int64], first: int, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows from the first one on that have at most so many keys together, or of one row."""
    ends = np.cumsum(most_keys)
    while first < ends.size:
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + most, "right")), first + 1)
        yield first, last
        first = last


def _sorted(documents: ColumnStore, rows: NDArray[np.int64], keys_of: KeysOf, pool: ThreadPoolExecutor) -> PostingsRun:
    """The postings of these rows."""
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
        # Rows stand in order, and stay so: only the key is to be sorted by.
        sort_words(part, np.empty_like(part), 32, 64)

    list(pool.map(divide_block, range(len(blocks))))
    list(pool.map(sort_partition, range(PARTITIONS)))
    return run


def _write_merged(path: Path, runs: list[PostingsRun], starts: NDArray[np.int64], pool: ThreadPoolExecutor) -> None:
    """All runs as one, whose partitions start there; not yet durable."""
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
    """A file of these words, which are to be written first unless they are its own; returns their checksum."""
    data = np.ascontiguousarray(words).astype("<u8", copy=False).data
    with path.open("r+b" if written else "wb") as file:
        if not written:
            file.write(data)
            file.flush()
        os.fsync(file.fileno())
    return zlib.crc32(data)


def _merged_partition(runs: list[PostingsRun], number: int) -> NDArray[np.uint64]:
    """One partition of all runs."""

    def merge_two(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> NDArray[np.uint64]:
        both = np.empty(one.size + other.size, np.uint64)
        merge_step(one, None, other, None, (0, 0), both, None, both.size)
        return both

    return merge_pairwise([run.partition(number) for run in runs], merge_two)


def merge_pairwise(parts: Sequence[_T], merge_two: Callable[[_T, _T], _T]) -> _T:
    """All parts as one, merged two by two, and what comes of it again: log2 passes over everything (Broder 1997)."""
    while len(parts) > 1:
        parts = [merge_two(*parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]

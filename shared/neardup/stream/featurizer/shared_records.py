"""Records on their way to another process.

Their values go through memory that both see: through a pipe, a page takes a third longer to featurize.
"""

import mmap
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from multiprocessing import reduction
from typing import Any, Final, NamedTuple

from neardup.log import PlainRecord, Record

SLOT: Final = 1 << 21
"""Bytes for the values of a parcel: 64 pages of 32 KB. More than that goes through the pipe."""
_SLOTS: Final = 64
"""What was never used takes no memory."""


class SharedSlots:
    """Slots of memory that this process shares with those it starts. Pickle it only to start one."""

    def __init__(self, file: int) -> None:
        """Of an open file, which is then this shelf's to close."""
        self._file = file
        self._memory = mmap.mmap(file, _SLOTS * SLOT)
        # Appending and popping are atomic: a slot is cleared in whichever thread hears of it.
        self._free = deque(range(_SLOTS))

    @classmethod
    def make(cls) -> "SharedSlots | None":
        """A new one; None where the system has no files in memory, or does not let us."""
        try:
            file = os.memfd_create("neardup")
        except (AttributeError, OSError):
            return None
        os.ftruncate(file, _SLOTS * SLOT)
        return cls(file)

    def put(self, values: Sequence[bytes]) -> int | None:
        """The slot that now holds these, one after the other; None when they are too many bytes, or all are taken."""
        if sum(map(len, values)) > SLOT:
            return None
        try:
            slot = self._free.pop()
        except IndexError:
            return None
        at = slot * SLOT
        for value in values:
            self._memory[at : at + len(value)] = value
            at += len(value)
        return slot

    def get(self, slot: int, start: int, stop: int) -> bytes:
        """Bytes of what was put there."""
        return self._memory[slot * SLOT + start : slot * SLOT + stop]

    def clear(self, slot: int) -> None:
        """Nobody reads it any more."""
        self._free.append(slot)

    def close(self) -> None:
        """Processes that have it keep it."""
        self._memory.close()
        os.close(self._file)

    def __reduce__(self) -> tuple[Callable[[Any], "SharedSlots"], tuple[Any]]:
        return _received, (reduction.DupFd(self._file),)


def _received(file: Any) -> SharedSlots:
    return SharedSlots(file.detach())


class RecordBatch(NamedTuple):
    """Records without their values, which are in a slot, or else travel as one: many are costly to pickle."""

    records: list[PlainRecord]
    ends: list[int | None]
    """Where the value of each record ends; None for a record without one."""
    slot: int | None
    values: bytes

    @classmethod
    def of(cls, records: Sequence[Record], shelf: SharedSlots | None) -> "RecordBatch":
        """A parcel of these."""
        values = [record.value for record in records]
        ends = accumulate(len(value or b"") for value in values)
        present = [value for value in values if value is not None]
        slot = None if shelf is None else shelf.put(present)
        return cls(
            [_without_value(record) for record in records],
            [None if value is None else end for value, end in zip(values, ends, strict=True)],
            slot,
            b"".join(present) if slot is None else b"",
        )

    def unpacked(self, shelf: SharedSlots | None) -> Iterator[PlainRecord]:
        """The records again, one by one: what was just copied is read from the cache."""
        start = 0
        for record, end in zip(self.records, self.ends, strict=True):
            if end is None:
                yield record
                continue
            topic, partition, offset, timestamp, key, _, headers = record
            yield PlainRecord(topic, partition, offset, timestamp, key, self._value(shelf, start, end), headers)
            start = end

    def _value(self, shelf: SharedSlots | None, start: int, end: int) -> bytes:
        if shelf is None or self.slot is None:
            return self.values[start:end]
        return shelf.get(self.slot, start, end)


def _without_value(record: Record) -> PlainRecord:
    return PlainRecord(
        record.topic, record.partition, record.offset, record.timestamp, record.key, None, tuple(record.headers)
    )

"""Records packed for another process, with their values in shared memory.

If the values went through a pipe instead, featurizing a page would take a third longer.
"""

import mmap
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from multiprocessing import reduction
from typing import Any, Final, NamedTuple

from neardup.log import PlainRecord, Record

SLOT_BYTES: Final = 1 << 21
"""Capacity of a slot: 64 pages of 32 KB. Larger batches of values are pickled and go through the pipe."""
_SLOTS: Final = 64
"""Number of slots. A slot that was never written takes no memory."""


class SharedSlots:
    """A pool of slots in memory that a process shares with its child processes.

    Can be pickled only while a child process is started. The parent writes and releases slots, children read them.
    """

    def __init__(self, file: int) -> None:
        """Map an open file, which this object then owns and closes."""
        self._file = file
        self._memory = mmap.mmap(file, _SLOTS * SLOT_BYTES)
        # Appending to a deque and popping from it are atomic: any thread may release a slot.
        self._free = deque(range(_SLOTS))

    @classmethod
    def create(cls) -> "SharedSlots | None":
        """Create slots; return None if the system has no files in memory or refuses to create one."""
        try:
            file = os.memfd_create("neardup")
        except (AttributeError, OSError):
            return None
        os.ftruncate(file, _SLOTS * SLOT_BYTES)
        return cls(file)

    def write(self, values: Sequence[bytes]) -> int | None:
        """Write values to a free slot, one after the other, and return its number.

        Returns None if the values do not fit in a slot or no slot is free.
        """
        if sum(map(len, values)) > SLOT_BYTES:
            return None
        try:
            slot = self._free.pop()
        except IndexError:
            return None
        position = slot * SLOT_BYTES
        for value in values:
            self._memory[position : position + len(value)] = value
            position += len(value)
        return slot

    def read(self, slot: int, start: int, stop: int) -> bytes:
        """Return a range of the bytes in a slot."""
        return self._memory[slot * SLOT_BYTES + start : slot * SLOT_BYTES + stop]

    def release(self, slot: int) -> None:
        """Make a slot free for other values."""
        self._free.append(slot)

    def close(self) -> None:
        """Unmap the memory in this process; child processes keep their own mapping."""
        self._memory.close()
        os.close(self._file)

    def __reduce__(self) -> tuple[Callable[[Any], "SharedSlots"], tuple[Any]]:
        return _unpickle, (reduction.DupFd(self._file),)


def _unpickle(file: Any) -> SharedSlots:
    return SharedSlots(file.detach())


class PackedRecords(NamedTuple):
    """Records for another process, with all their values in a slot of shared memory or in one `bytes` object.

    Pickling each value separately is expensive.
    """

    records: list[PlainRecord]
    """The records without their values."""
    ends: list[int | None]
    """The end of each record's value among all values; None for a record without a value."""
    slot: int | None
    """The slot that holds the values; None if they are in `values`."""
    values: bytes

    @classmethod
    def pack(cls, records: Sequence[Record], slots: SharedSlots | None) -> "PackedRecords":
        """Pack records. The caller releases `slot` when the other process has unpacked them."""
        values = [record.value for record in records]
        ends = accumulate(len(value or b"") for value in values)
        present = [value for value in values if value is not None]
        slot = None if slots is None else slots.write(present)
        return cls(
            [_without_value(record) for record in records],
            [None if value is None else end for value, end in zip(values, ends, strict=True)],
            slot,
            b"".join(present) if slot is None else b"",
        )

    def unpack(self, slots: SharedSlots | None) -> Iterator[PlainRecord]:
        """Yield the records with their values. Each is copied just before its use, so that it is in the CPU cache."""
        start = 0
        for record, end in zip(self.records, self.ends, strict=True):
            if end is None:
                yield record
                continue
            topic, partition, offset, timestamp, key, _, headers = record
            yield PlainRecord(topic, partition, offset, timestamp, key, self._value(slots, start, end), headers)
            start = end

    def _value(self, slots: SharedSlots | None, start: int, end: int) -> bytes:
        if slots is None or self.slot is None:
            return self.values[start:end]
        return slots.read(self.slot, start, end)


def _without_value(record: Record) -> PlainRecord:
    return PlainRecord(
        record.topic, record.partition, record.offset, record.timestamp, record.key, None, tuple(record.headers)
    )

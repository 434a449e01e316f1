"""Stages that copy records, for tests and benchmarks."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from neardup.errors import RecordError
from neardup.log import Output, Record
from neardup.messages.dead_letters import Rejection
from neardup.runtime.stage import Stage, Waves


class Unwanted(RecordError):
    reason = "unwanted"


class Copier(Stage):
    """A stateless stage that copies records to the same partition of a topic. Rejects values with the prefix `bad`."""

    name = "copier"

    def __init__(self, target: str, before: Callable[[Sequence[Record]], None] = lambda records: None) -> None:
        self.events: list[str] = []
        self.copied = 0
        self._target = target
        self._before = before
        self._next = 0

    def open(self, directory: Path) -> int | None:
        self.events.append("open")
        return None

    def process(self, records: Sequence[Record]) -> Waves:
        self._before(records)
        self.events.append(f"process {records[0].offset}-{records[-1].offset}")
        good, rejected = [], []
        for record in records:
            if record.value is not None and record.value.startswith(b"bad"):
                rejected.append(Rejection(record, Unwanted("starts with bad")))
            else:
                good.append(Output(self._target, record.partition, record.key, record.value))
        self.copied += len(good)
        self._next = records[-1].offset + 1
        return Waves([good], rejected)

    def checkpoint(self) -> int:
        self.events.append(f"checkpoint {self._next}")
        return self._next

    def close(self) -> None:
        self.events.append("close")


class Counter(Copier):
    """A copier with state: it numbers the records that it receives and stores the count in a file."""

    name = "counter"

    def open(self, directory: Path) -> int | None:
        super().open(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / "count"
        self._next = int(self.file.read_text()) if self.file.exists() else 0
        return self._next

    def process(self, records: Sequence[Record]) -> Waves:
        assert records[0].offset == self._next, f"expected offset {self._next}, got {records[0].offset}"
        return super().process(records)

    def checkpoint(self) -> int:
        self.file.write_text(str(self._next))
        return super().checkpoint()


class SlowToSave(Counter):
    """A counter whose state is not written until `may_save` is set."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.may_save = threading.Event()

    def freeze(self) -> Callable[[], int]:
        offset = self._next
        self.events.append(f"freeze {offset}")

        def save() -> int:
            self.may_save.wait(10)
            self.file.write_text(str(offset))
            self.events.append(f"saved {offset}")
            return offset

        return save

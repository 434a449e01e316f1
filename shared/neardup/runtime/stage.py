"""What a service does to the records of one partition, free of any log."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from neardup.errors import RecordError, StateUnavailable
from neardup.log import Output, Record
from neardup.messages.dead_letters import Rejection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Waves:
    """What a batch of records caused.

    The outputs of a wave are sent only when all of the wave before are acknowledged. Rejected records become
    dead letters.
    """

    waves: Sequence[Sequence[Output]] = ()
    rejected: Sequence[Rejection] = ()


class Stage(ABC):
    """Owns the state of one partition and turns its records into outputs.

    Does no I/O but in its own state directory, reads no clock and no environment: the state and the
    outputs are a function of the records alone. Calls come one at a time, `open` first and `close` last, but from
    different threads; only what `freeze` returned may run beside them. Any method may block; none runs on the event
    loop but `is_full`, which does not block.
    """

    name: ClassVar[str]

    @abstractmethod
    def open(self, directory: Path) -> int | None:
        """Load the state; return the offset to read from.

        None means that this stage keeps no state, and reading goes on at the committed offset. A stage that lost its
        state returns 0: the log rebuilds it. Raises StateError if what lies there cannot be used.
        """

    @abstractmethod
    def process(self, records: Sequence[Record]) -> Waves:
        """Take the next records, in order, one or more. Repeats after a restart are possible.

        A record that cannot be used is returned as rejected and changes nothing. Anything raised from
        here stops the worker with nothing committed.
        """

    @abstractmethod
    def checkpoint(self) -> int:
        """Make the state durable; return the offset that is safe to commit.

        Called only when every output of every processed record is acknowledged.
        """

    def freeze(self) -> Callable[[], int]:
        """A checkpoint in two steps: take hold of the state as it is now; what is returned makes that durable.

        It returns the offset that is safe to commit. It is called at most once, before the next `freeze` and before
        `close`, in another thread, while records are processed: a stage whose state takes long to write overrides
        this. This one does everything in the first step.
        """
        offset = self.checkpoint()
        return lambda: offset

    @property
    def is_full(self) -> bool:
        """Whether so much is unsaved that a checkpoint should not wait for its time."""
        return False

    def after_gap(self, directory: Path, group: str) -> str:
        """What an operator can do when the log no longer holds what this stage would have to read next."""
        return f"restore a snapshot, or delete the state directory {directory} and reset the offset of group {group}"

    def close(self) -> None:
        """Release files and memory. Saves nothing: that is what `checkpoint` is for."""
        return


@contextmanager
def using_state(directory: Path) -> Iterator[None]:
    """Around a call of a stage: it does no other I/O, so an OSError says that its directory cannot be used."""
    try:
        yield
    except OSError as error:
        raise StateUnavailable(
            f"{directory}: expected to read and write the state, got: {error}; free some space or make it writable, "
            "and start again: it goes on from the last checkpoint"
        ) from error


def decoded(records: Sequence[Record], decode: Callable[[Record], T]) -> tuple[list[tuple[Record, T]], list[Rejection]]:
    """Decode each record; those that raise a RecordError come back as rejections."""
    good: list[tuple[Record, T]] = []
    rejected: list[Rejection] = []
    for record in records:
        try:
            good.append((record, decode(record)))
        except RecordError as error:
            rejected.append(Rejection(record, error.without_frames()))
    return good, rejected

"""The interface of a stage: the work of a service on one partition, independent of any log."""

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
    """The result of a batch of records.

    The outputs of a wave are sent only when all outputs of the previous wave are acknowledged. Rejected records become
    dead letters.
    """

    waves: Sequence[Sequence[Output]] = ()
    rejected: Sequence[Rejection] = ()


class Stage(ABC):
    """The state of one partition, and the function that turns its records into outputs.

    A stage does I/O only in its own state directory and reads no clock and no environment: its state and its outputs
    are a function of the records alone. Calls come one at a time, `open` first and `close` last, but from different
    threads; only the function that `freeze` returned may run in parallel. Any method may block, and none runs on the
    event loop except `is_full`, which does not block.
    """

    name: ClassVar[str]

    @abstractmethod
    def open(self, directory: Path) -> int | None:
        """Load the state; return the offset to read from.

        None means that this stage keeps no state and resumes at the committed offset. A stage that lost its state
        returns 0 and is rebuilt from the log. Raises StateError if the directory holds a state that cannot be used.
        """

    @abstractmethod
    def process(self, records: Sequence[Record]) -> Waves:
        """Process the next records, one or more, in order. After a restart records may be repeated.

        A record that cannot be used is returned as rejected and changes nothing. An exception stops the worker, which
        then commits nothing.
        """

    @abstractmethod
    def checkpoint(self) -> int:
        """Make the state durable; return the offset that is safe to commit.

        Called only when every output of every processed record is acknowledged.
        """

    def freeze(self) -> Callable[[], int]:
        """Checkpoint in two steps: freeze the current state, and return a function that makes it durable.

        That function returns the offset that is safe to commit. It is called at most once, before the next `freeze` and
        before `close`, in another thread, while records are processed. The default does everything in the first step; a
        stage whose state takes long to write overrides this method.
        """
        offset = self.checkpoint()
        return lambda: offset

    @property
    def is_full(self) -> bool:
        """True if the amount of unsaved state requires a checkpoint at once."""
        return False

    def after_gap(self, directory: Path, group: str) -> str:
        """Return what an operator can do when the log no longer holds the records that this stage needs next."""
        return f"restore a snapshot, or delete the state directory {directory} and reset the offset of group {group}"

    def close(self) -> None:
        """Release files and memory without saving anything."""
        return


@contextmanager
def using_state(directory: Path) -> Iterator[None]:
    """Turn an OSError of a stage into StateUnavailable: a stage does I/O only in its state directory."""
    try:
        yield
    except OSError as error:
        raise StateUnavailable(
            f"{directory}: expected to read and write the state, got: {error}; free some space or make it writable, "
            "and start again; the worker continues from the last checkpoint"
        ) from error


def decoded(records: Sequence[Record], decode: Callable[[Record], T]) -> tuple[list[tuple[Record, T]], list[Rejection]]:
    """Decode each record; return the decoded ones, and rejections for those that raised a RecordError."""
    good: list[tuple[Record, T]] = []
    rejected: list[Rejection] = []
    for record in records:
        try:
            good.append((record, decode(record)))
        except RecordError as error:
            rejected.append(Rejection(record, error.without_frames()))
    return good, rejected

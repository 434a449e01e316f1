"""Output files of `neardup dedup`: new ones are created, those of an interrupted run continued, others refused.

The state directory records which files a run writes and how long they were at its last save:

    <state>/outputs.json       path, inode and length of each file, and whether the run was completed

Lengths are recorded after the files are durable and before the state is saved. A run that resumes truncates its files
to these lengths, which also removes incomplete last lines, and processes the pages since the last save again. No
verdict is lost, and a verdict is repeated only if the run was killed while it saved.
"""

import contextlib
import json
import os
import stat
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Final, Self

from neardup.errors import CorruptState, InputError, WrongState
from neardup.util.atomic_file import write_text

RECORD: Final = "outputs.json"
STANDARD_OUTPUT: Final = "-"
_VERSION: Final = 1
_OPTIONS: Final = "name another file, append with --append, or replace it with --overwrite"


class Existing(StrEnum):
    """Treatment of a file that has content and was not written by the run that is resumed."""

    REFUSE = "refuse"
    APPEND = "append"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True)
class _Written:
    """A file in the record. A different inode means that another file took its place."""

    inode: int
    length: int


class OutputFile:
    """A file for JSON lines. `start` truncates a regular file to the length to keep; other files are only written."""

    def __init__(self, path: Path | None, file: IO[bytes], keep: int) -> None:
        self.path = path
        self._file = file
        self._keep = keep
        self._started = False

    def start(self) -> None:
        """Truncate the file to the length to keep. Must be called before `write`."""
        self._started = True
        if self.path is not None:
            self._file.truncate(self._keep)

    def write(self, line: bytes) -> None:
        """Write a line, given without its line end."""
        assert self._started, "expected a call of start before write"
        self._file.write(line + b"\n")

    def sync(self) -> None:
        """Make everything written durable."""
        self._file.flush()
        with contextlib.suppress(OSError):  # a pipe cannot be synced
            os.fsync(self._file.fileno())

    def written(self) -> _Written:
        """Return the inode and the length of the file as it is on disk."""
        status = os.fstat(self._file.fileno())
        return _Written(status.st_ino, status.st_size)


class OutputFiles:
    """The output files of one run and their record in the state directory. Use as a context manager.

    `open` raises InputError for a file of another run; nothing is changed before `start`.
    """

    def __init__(self, state: Path, existing: Existing) -> None:
        self._record = state / RECORD
        self._existing = existing
        self._interrupted = _read(self._record)
        self._files: list[OutputFile] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def abandoned(self) -> list[str]:
        """Files of the interrupted run that this run does not write to."""
        return sorted(self._interrupted.keys() - {str(each.path) for each in self._files})

    def open(self, name: str) -> OutputFile:
        """Open a file to be continued or created. Raises InputError, or OSError if it cannot be written."""
        if name == STANDARD_OUTPUT:
            opened = OutputFile(None, sys.stdout.buffer, 0)
        else:
            path = Path(name).resolve()
            if path in [each.path for each in self._files]:
                raise InputError(f"{name}: expected one file for verdicts and another for dead letters, got the same")
            file = self._stack.enter_context(Path(name).open("ab"))  # noqa: SIM115
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                opened = OutputFile(path, file, self._length_to_keep(path, os.fstat(file.fileno())))
            else:
                opened = OutputFile(None, file, 0)
        self._files.append(opened)
        return opened

    def start(self) -> None:
        """Truncate the files to the lengths to keep, and record that a run writes to them."""
        for each in self._files:
            each.start()
        self.note()

    def note(self, *, complete: bool = False) -> None:
        """Make the files durable and record their lengths. Must be called before each save of the state."""
        files: dict[str, Any] = {}
        for each in self._files:
            each.sync()
            if each.path is not None:
                written = each.written()
                files[str(each.path)] = {"inode": written.inode, "length": written.length}
        write_text(self._record, json.dumps({"version": _VERSION, "complete": complete, "files": files}))

    def _length_to_keep(self, path: Path, status: os.stat_result) -> int:
        size = status.st_size
        if not size or self._existing is Existing.OVERWRITE:
            return 0
        ours = self._interrupted.get(str(path))
        if ours is not None and ours.inode == status.st_ino and ours.length <= size:
            return ours.length
        if self._existing is Existing.REFUSE and ours is not None:
            raise InputError(
                f"{path}: expected the {ours.length:,} bytes that the interrupted run wrote, got {size:,} bytes or "
                f"another file in its place: restore it, or {_OPTIONS}"
            )
        if self._existing is Existing.REFUSE:
            raise InputError(f"{path}: expected no file or an empty one, got {size:,} bytes of another run: {_OPTIONS}")
        if not _ends_with_a_line(path):
            raise InputError(
                f"{path}: expected a file of complete lines to append to, got an incomplete last line: the run that "
                "wrote it was interrupted; remove that line, or use another file"
            )
        return size


def _ends_with_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _read(record: Path) -> dict[str, _Written]:
    """Return the files of an interrupted run by path; none if there is no record or the run was completed."""
    if not record.exists():
        return {}
    try:
        body = json.loads(record.read_text())
        version, complete = body["version"], body["complete"]
        files = {path: _Written(int(each["inode"]), int(each["length"])) for path, each in body["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptState(
            f"{record}: expected a record of output files, cannot read it: {error!r}; delete it if it is damaged"
        ) from error
    if version != _VERSION:
        raise WrongState(f"{record}: expected version {_VERSION}, got {version!r}: use the release that wrote it")
    return {} if complete else files

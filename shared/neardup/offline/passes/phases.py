"""Phases of a pass: each one's output is a file that says which run it belongs to. What is there is not done again.

A file of the run before stays until that of this run takes its place: a phase can go on from it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import WrongState
from neardup.offline.report.report import Phase
from neardup.util import array_file
from neardup.util.array_file import Contents

_MAGIC: Final = b"NDPHASE\0"
_VERSION: Final = 1

Progress = Callable[[str, int, int], None]
"""Told the phase, and how many of its steps are done, of all. The last step is done when the output is durable."""


class PhaseOutput(NamedTuple):
    """The result of a phase: values that JSON can represent, and contiguous arrays by name."""

    values: Mapping[str, object]
    arrays: Mapping[str, NDArray[np.generic]]


class RunKey(NamedTuple):
    """What a run works on: rows up to `rows`, of which those before `first` were there in the run before."""

    first: int
    rows: int
    files: str
    """Digest of the files that the rows came from: row numbers mean something else with others."""


class Phases:
    """The files of one run in a directory; `done` lists the phases in the order in which they were asked for."""

    def __init__(self, directory: Path, run: RunKey, progress: Progress) -> None:
        self.done: list[Phase] = []
        self._directory, self._run, self._progress = directory, run, progress

    def is_done(self, name: str) -> bool:
        """Whether this run has finished a phase."""
        return self._path(name).exists() and self._run_of(name) == self._run

    def previous(self, name: str) -> Contents | None:
        """What the run before this one found; None in the first run. Raises StateError when it is not there."""
        if not self._run.first:
            return None
        path = self._path(name)
        found = self._run_of(name) if path.exists() else None
        if found is None or found.rows != self._run.first:
            got = "nothing" if found is None else f"{found.rows} documents"
            raise WrongState(f"{path}: expected {self._run.first} documents, got {got}: start anew with --full")
        return self._read(name)

    def run(
        self, name: str, find: Callable[[], PhaseOutput], *, writes: Sequence[Path] = (), mapped: bool = False
    ) -> Contents:
        """What a phase finds (some values and some arrays): now, or before a restart.

        `writes`: to other files. `mapped`: arrays found before are not read into memory, but mapped.
        """
        if self.is_done(name) and all(path.exists() for path in writes):
            return self.load(name, mapped=mapped)
        started = time.perf_counter()
        found = find()
        seconds = time.perf_counter() - started
        elsewhere = sum(path.stat().st_size for path in writes)
        about = {"run": self._run, "seconds": seconds, "elsewhere": elsewhere, "values": found.values}
        array_file.write(self._path(name), magic=_MAGIC, version=_VERSION, about=about, arrays=found.arrays)
        self._finished(name, repeated=False)
        return Contents(dict(found.values), dict(found.arrays))

    def load(self, name: str, *, mapped: bool = False) -> Contents:
        """What a phase that is finished has found."""
        self._finished(name, repeated=True)
        return self._mapped(name) if mapped else self._read(name)

    def values(self, name: str) -> dict[str, Any]:
        """Only the values that a phase found."""
        values: dict[str, Any] = self._about(name)["values"]
        return values

    def drop(self, name: str) -> None:
        """Delete what a phase found: nobody needs it any more."""
        self._path(name).unlink(missing_ok=True)

    def _finished(self, name: str, *, repeated: bool) -> None:
        about = self._about(name)
        self.done.append(Phase(name, about["seconds"], self._path(name).stat().st_size + about["elsewhere"], repeated))
        self._progress(name, 1, 1)

    def _read(self, name: str) -> Contents:
        contents = array_file.read(self._path(name), magic=_MAGIC, version=_VERSION)
        return Contents(contents.about["values"], contents.arrays)

    def _mapped(self, name: str) -> Contents:
        arrays = array_file.map_arrays(self._path(name), magic=_MAGIC, version=_VERSION)
        return Contents(self.values(name), {each: array.checked() for each, array in arrays.items()})

    def _run_of(self, name: str) -> RunKey:
        return RunKey(*self._about(name)["run"])

    def _about(self, name: str) -> dict[str, Any]:
        return array_file.read_about(self._path(name), magic=_MAGIC, version=_VERSION)

    def _path(self, name: str) -> Path:
        return self._directory / name.replace(" ", "-")

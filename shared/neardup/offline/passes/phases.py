"""Phases of a pass. Each phase writes its output to a file that names the run, and a finished phase is not repeated.

The file of the previous run remains until the file of this run replaces it, so a phase can use its previous output.
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
"""(phase, number of its steps done, number of all its steps). The last step ends when the output is durable."""


class PhaseOutput(NamedTuple):
    """The result of a phase: values that JSON can represent, and contiguous arrays by name."""

    values: Mapping[str, object]
    arrays: Mapping[str, NDArray[np.generic]]


class RunKey(NamedTuple):
    """The rows of a run. Rows below `first` were part of the previous run."""

    first: int
    rows: int
    files: str
    """Digest of the files that the rows came from. Row numbers are valid only for the same files."""


class Phases:
    """Files of one run in a directory. `done` lists the phases in the order of their completion."""

    def __init__(self, directory: Path, run: RunKey, progress: Progress) -> None:
        self.done: list[Phase] = []
        self._directory, self._run, self._progress = directory, run, progress

    def is_done(self, name: str) -> bool:
        """Return whether this run has finished a phase."""
        return self._path(name).exists() and self._run_of(name) == self._run

    def previous(self, name: str) -> Contents | None:
        """Return the output of a phase in the previous run, or None in the first run.

        Raises StateError if the output is missing.
        """
        if not self._run.first:
            return None
        path = self._path(name)
        found = self._run_of(name) if path.exists() else None
        if found is None or found.rows != self._run.first:
            got = "nothing" if found is None else f"{found.rows} documents"
            raise WrongState(f"{path}: expected {self._run.first} documents, got {got}: run again with --full")
        return self._read(name)

    def run(
        self, name: str, find: Callable[[], PhaseOutput], *, writes: Sequence[Path] = (), mapped: bool = False
    ) -> Contents:
        """Return the output of a phase. Compute it unless the run has already done so before a restart.

        `writes` lists other files that the phase writes. With `mapped`, arrays computed before the restart are
        memory-mapped instead of read.
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
        """Return the output of a finished phase."""
        self._finished(name, repeated=True)
        return self._mapped(name) if mapped else self._read(name)

    def values(self, name: str) -> dict[str, Any]:
        """Return only the values that a phase computed."""
        values: dict[str, Any] = self._about(name)["values"]
        return values

    def drop(self, name: str) -> None:
        """Delete the output of a phase."""
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

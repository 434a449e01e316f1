"""Paths inside a results directory of the offline pass."""

from pathlib import Path
from typing import Final

WORK: Final = "work"
"""Directory of intermediate files, on which the next pass builds."""
DOCUMENTS: Final = "gathered"
"""Directory of the column store inside `WORK`."""
_SOURCES: Final = "sources"


def work_directory(directory: Path) -> Path:
    """Return the directory of intermediate files in a results directory."""
    return directory / WORK


def documents_directory(directory: Path) -> Path:
    """Return the directory of the column store that the last pass used."""
    return work_directory(directory) / DOCUMENTS


def source_directory(directory: Path, name: str) -> Path:
    """Return the directory in which a pair source keeps its state between passes."""
    return work_directory(directory) / _SOURCES / name

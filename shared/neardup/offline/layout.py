"""Paths inside a results directory of the offline pass."""

from pathlib import Path
from typing import Final

WORK: Final = "work"
"""Folder for the intermediate files of the runs, which the next run continues from."""
DOCUMENTS: Final = "gathered"
"""Folder in `WORK` with the documents as columns."""
_SOURCES: Final = "sources"


def work_directory(directory: Path) -> Path:
    """Return the directory of the intermediate files in a results directory."""
    return directory / WORK


def documents_directory(directory: Path) -> Path:
    """Return the directory of the documents that the last run used."""
    return work_directory(directory) / DOCUMENTS


def source_directory(directory: Path, name: str) -> Path:
    """Return the directory in which a source of pairs keeps its state between runs."""
    return work_directory(directory) / _SOURCES / name

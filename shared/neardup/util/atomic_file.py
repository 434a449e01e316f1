"""Files that are replaced as a whole: after a crash or an error a path has the earlier contents or the later ones.

The new contents are written to a temporary file in the same directory and synced. The temporary file is then renamed,
and the directory is synced, so that the rename is on the disk when the function returns.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file for writing that replaces `path` when the block ends without an error."""
    with _temporary(path) as beside:
        with beside.open("wb") as file:
            yield file
            sync_file(file)
        os.replace(beside, path)
    sync_directory(path.parent)


@contextlib.contextmanager
def replacing_path(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces `path` when the block ends without an error.

    For libraries that create the file themselves. They must have closed it by the end of the block.
    """
    with _temporary(path) as beside:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    sync_directory(path.parent)


def write_text(path: Path, text: str) -> None:
    """Replace the contents of `path` by a text in UTF-8."""
    with replacing(path) as file:
        file.write(text.encode())


def sync_file(file: IO[bytes]) -> None:
    """Flush the buffers of an open file and wait until its contents are on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(path: Path | str) -> None:
    """Wait until the entries of a directory, such as the name of a renamed file, are on the disk."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    beside = path.with_name(f".{path.name}.new")
    with contextlib.suppress(FileNotFoundError):  # left by a crash
        beside.unlink()
    try:
        yield beside
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise

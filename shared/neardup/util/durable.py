"""Files that are there whole or not at all, whatever fails."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, beside its place; when all is written it is made durable, and takes it."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def write_text(path: Path, text: str) -> None:
    """A file with this text."""
    with replacing(path) as file:
        file.write(text.encode())

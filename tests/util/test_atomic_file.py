"""Tests of atomic replacement under injected faults: the path has the earlier or the later content, and no other."""

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neardup.embedded.embedded import Progress, read_progress, write_progress
from neardup.errors import NeardupError
from neardup.index.psm.flip_model import FlipModel
from neardup.util import array_file
from neardup.util.atomic_file import replacing, replacing_path, write_text


class Disk:
    """Records the calls of `os` on files and directories, and makes one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failing: int = -1) -> None:
        self.calls: list[str] = []
        self._failing = failing
        self._fsync, self._replace = os.fsync, os.replace
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "replace", self.replace)

    def fsync(self, number: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        self._call(f"sync {'directory' if path.is_dir() else path.name}")
        self._fsync(number)

    def replace(self, old: Path, new: Path) -> None:
        self._call(f"rename {Path(old).name} to {Path(new).name}")
        self._replace(old, new)

    def _call(self, what: str) -> None:
        self.calls.append(what)
        if len(self.calls) - 1 == self._failing:
            raise OSError(errno.ENOSPC, "no space")


def by_handle(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def by_path(path: Path, content: bytes) -> None:
    with replacing_path(path) as beside:
        beside.write_bytes(content)


def by_text(path: Path, content: bytes) -> None:
    write_text(path, content.decode())


WRITERS = pytest.mark.parametrize("write", [by_handle, by_path, by_text])


@WRITERS
def test_the_file_is_synced_before_it_is_renamed_and_the_directory_after(
    write: Callable[[Path, bytes], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    write(tmp_path / "a", b"later")
    assert disk.calls == ["sync .a.new", "rename .a.new to a", "sync directory"]
    assert (tmp_path / "a").read_bytes() == b"later"


@WRITERS
@pytest.mark.parametrize(("failing", "expected"), [(0, b"earlier"), (1, b"earlier"), (2, b"later")])
@pytest.mark.parametrize("exists", [True, False])
def test_an_error_at_any_step_leaves_the_earlier_or_the_later_contents(
    write: Callable[[Path, bytes], None], failing: int, expected: bytes, exists: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = tmp_path / "a"
    if exists:
        path.write_bytes(b"earlier")
    Disk(monkeypatch, failing)
    with pytest.raises(OSError, match="no space"):
        write(path, b"later")
    if exists or expected == b"later":
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a": expected}
    else:
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("manager", [replacing, replacing_path])
def test_an_interrupted_writer_leaves_the_earlier_contents(manager: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"earlier")

    def write() -> None:
        with manager(path) as target:
            if isinstance(target, Path):
                target.write_bytes(b"half")
            else:
                target.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a": b"earlier"}


@WRITERS
def test_a_file_that_does_not_fit_leaves_the_earlier_contents(
    write: Callable[[Path, bytes], None], tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"earlier")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(path, bytes(8192))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a": b"earlier"}


def test_a_temporary_file_that_a_crash_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".a.new").write_bytes(b"rest of an earlier, longer file")
    by_handle(tmp_path / "a", b"later")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a": b"later"}


# The state files that are written with it


def write_arrays(path: Path, number: int) -> None:
    arrays = {"a": np.full(10, number, np.uint64)}
    array_file.write(path, magic=b"12345678", version=1, about={"number": number}, arrays=arrays)


def read_arrays(path: Path) -> int:
    about, arrays = array_file.read(path, magic=b"12345678", version=1)
    assert set(arrays["a"].tolist()) == {about["number"]}
    return int(about["number"])


def write_the_progress(path: Path, number: int) -> None:
    write_progress(path.parent, Progress(plan="p", pages=number))


def read_the_progress(path: Path) -> int:
    found = read_progress(path.parent)
    assert found is not None
    return found.pages


def write_flips(path: Path, number: int) -> None:
    FlipModel(tuple([number] * 256)).save(path)


def read_flips(path: Path) -> int:
    return FlipModel.load(path).costs[0]


@pytest.mark.parametrize("failing", range(3))
@pytest.mark.parametrize(
    ("name", "write", "read"),
    [
        ("arrays", write_arrays, read_arrays),
        ("embedded.json", write_the_progress, read_the_progress),
        ("flips.json", write_flips, read_flips),
    ],
)
def test_state_files_survive_an_error_at_any_step(
    name: str, write: Any, read: Any, failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    write(path, 1)
    with monkeypatch.context() as patched:
        disk = Disk(patched, failing)
        with pytest.raises((OSError, NeardupError)):
            write(path, 2)
    assert len(disk.calls) == failing + 1
    assert read(path) == (2 if failing == 2 else 1)
    assert [each.name for each in tmp_path.iterdir()] == [name]

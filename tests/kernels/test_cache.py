"""Tests of the cache of compiled kernels: it is never stale, need not be writable, and has a limited size."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import neardup
from neardup.kernels import cache
from tests.kernels.conftest import INTERPRETED

pytestmark = pytest.mark.skipif(INTERPRETED, reason="there is no cache with the JIT off")

# `ngrams` reaches `rotate` through `hash_words`, and the two are in different files.
NGRAMS = """
import numpy as np
from neardup.kernels.signatures.shingling import ngrams
print(ngrams(np.arange(8, dtype=np.uint64), 4).tolist())
"""


def _run(program: str, package: Path, folder: Path, *prefix: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "NUMBA_CACHE_DIR": str(folder),
        "PYTHONHASHSEED": "0",
    }
    done = subprocess.run(
        [*prefix, sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _copy_of_package(target: Path) -> Path:
    source = Path(next(iter(neardup.__path__)))
    return shutil.copytree(source, target / "neardup", ignore=shutil.ignore_patterns("__pycache__"))


def _change_rotate(package: Path) -> None:
    path = next(package.glob("kernels/**/hashing.py"))
    source = path.read_text()
    before = "return (x << np.uint64(by)) | (x >> np.uint64(64 - by))"
    assert before in source
    path.write_text(source.replace(before, "return (x << np.uint64(by)) ^ (x >> np.uint64(63 - by))"))


def test_a_changed_kernel_changes_the_kernels_that_call_it(tmp_path: Path) -> None:
    package, folder = _copy_of_package(tmp_path), tmp_path / "cache"
    original = _run(NGRAMS, package, folder)
    assert _run(NGRAMS, package, folder) == original
    _change_rotate(package)
    changed = _run(NGRAMS, package, folder)
    assert changed == _run(NGRAMS, package, tmp_path / "empty cache")
    assert changed != original
    assert len(list(folder.glob("kernels-*"))) == 2


def test_a_cache_is_filled_without_recompiling_the_next_time(tmp_path: Path) -> None:
    refusing = NGRAMS.replace(
        "from neardup",
        "import numba.core.compiler as compiler\n"
        "def refuse(*_, **__): raise AssertionError('compiled')\n"
        "compiler.compile_extra = refuse\n"
        "from neardup",
    )
    package = Path(next(iter(neardup.__path__)))
    expected = _run(NGRAMS, package, tmp_path)
    assert _run(refusing, package, tmp_path) == expected


def _without_root_privileges() -> list[str]:
    """Return a command prefix under which even root cannot write to read-only directories."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root without setpriv can write everywhere")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@contextmanager
def _read_only(folder: Path) -> Iterator[None]:
    directories = [folder, *(each for each in folder.rglob("*") if each.is_dir())]
    for each in directories:
        each.chmod(0o500)
    yield
    for each in directories:
        each.chmod(0o700)


FOLDER = "from neardup.kernels import cache; print(cache.folder())"


def test_links_to_one_build_of_a_read_only_cache_are_not_used_with_the_next_build(tmp_path: Path) -> None:
    """Numba numbers the files of a function in the order in which they were compiled, which differs between builds."""
    package, built, home = Path(next(iter(neardup.__path__))), tmp_path / "built", tmp_path / "home"
    prefix = [*_without_root_privileges(), "env", f"XDG_CACHE_HOME={home}"]
    (built / f"kernels-{cache.digest()}").mkdir(parents=True)
    file = built / f"kernels-{cache.digest()}" / "f.nbi"
    used = []
    for content in ("first", "first", "second build"):
        if not file.exists() or file.read_text() != content:
            file.write_text(content)
        with _read_only(built):
            used.append(Path(_run(FOLDER, package, built, *prefix).strip()))
        assert (used[-1] / "f.nbi").readlink() == file
    assert used[0] == used[1] != used[2]
    assert all(each.is_relative_to(home) for each in used)


def test_the_lock_of_a_read_only_cache_is_not_linked(tmp_path: Path) -> None:
    package, built, home = Path(next(iter(neardup.__path__))), tmp_path / "built", tmp_path / "home"
    lock = built / f"kernels-{cache.digest()}" / cache.LOCK
    lock.parent.mkdir(parents=True)
    lock.touch(0o444)
    with _read_only(built):
        prefix = [*_without_root_privileges(), "env", f"XDG_CACHE_HOME={home}"]
        used = Path(_run(FOLDER, package, built, *prefix).strip())
    assert used.is_relative_to(home)
    assert not (used / cache.LOCK).is_symlink()


@pytest.mark.parametrize("variant", ["filled", "empty"])
def test_a_read_only_cache_works_through_another_folder(tmp_path: Path, variant: str) -> None:
    package, folder, home = Path(next(iter(neardup.__path__))), tmp_path / "read-only", tmp_path / "home"
    home.mkdir()
    expected = _run(NGRAMS, package, folder)
    if variant == "empty":
        for each in (folder / ("kernels-" + cache.digest())).glob("kernels*"):
            shutil.rmtree(each)
    directories = [each for each in folder.rglob("*") if each.is_dir()] + [folder]
    for each in directories:
        each.chmod(0o500)
    try:
        prefix = [*_without_root_privileges(), "env", f"XDG_CACHE_HOME={home}"]
        assert _run(NGRAMS, package, folder, *prefix) == expected
    finally:
        for each in directories:
            each.chmod(0o700)
    files = list(home.rglob("*.nbi"))
    assert files
    assert all(each.is_symlink() for each in files) == (variant == "filled")


def test_functions_outside_the_package_keep_the_cache_of_numba(tmp_path: Path) -> None:
    module = tmp_path / "outside.py"
    module.write_text(
        "import neardup.kernels\nfrom numba import njit\n\n"
        "@njit(cache=True)\ndef double(x):\n    return 2 * x\n\nprint(double(21))\n"
    )
    package = Path(next(iter(neardup.__path__)))
    assert _run(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import outside", package, tmp_path / "c") == "42\n"
    assert not list((tmp_path / "c").glob("kernels-*/**/outside*"))
    assert list((tmp_path / "c").glob("**/outside*.nbi"))


def test_pruning_removes_unused_folders_beyond_the_most_recent(tmp_path: Path) -> None:
    day = 86_400
    ages = {"kernels-new": 0, **{f"kernels-{age}": age * day for age in (1, 2, 8, 9, 30)}, "other": 99 * day}
    ages["kernels-" + cache.digest()] = 99 * day
    for name, age in ages.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        os.utime(tmp_path / name, (time.time() - age, time.time() - age))
    removed = cache.prune(tmp_path)
    assert sorted(each.name for each in removed) == ["kernels-30", "kernels-9"]
    assert {each.name for each in tmp_path.iterdir()} == ages.keys() - {"kernels-30", "kernels-9"}


def test_a_private_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert not cache._is_private(shared)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert not cache._is_private(link)
    assert cache._is_private(tmp_path / "mine")

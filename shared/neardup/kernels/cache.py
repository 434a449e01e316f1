"""The folder in which compiled kernels are cached, named by everything that determines the machine code.

Numba's own cache key covers the file of a kernel but not the kernels that it calls from other files: after an upgrade,
a kernel whose file is unchanged would keep an inlined copy of the old callee. The folder name therefore contains a
digest of the sources of all kernels, of the versions of numba and Python, and of the CPU. A folder is never reused for
other sources, and unused folders are pruned.

The base folder is `NUMBA_CACHE_DIR` if it is set, else the user's cache directory, else a private folder under the
system's temporary directory. A folder that exists but is read-only, such as one inside an image, is
used through links from the first base folder that is writable.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import numba
from numba.core import caching, registry
from numba.core import config as numba_config
from numba.core.dispatcher import Dispatcher
from numba.misc.appdirs import AppDirs

_config: Any = numba_config
"""The configuration of numba. Its attributes come from the environment, so type checkers do not see them."""
_user_directories: Any = AppDirs
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_KERNELS: Final = Path(__file__).resolve().parent
_PREFIX: Final = "kernels-"
LOCK: Final = "lock"
"""Name of the file in the folder that a process locks while it fills the cache. No other file is modified in place."""
_KEPT_FOLDERS: Final = 4
"""Number of folders of other digests that are never pruned, for checkouts or environments that are used in parallel."""
_UNUSED_SECONDS: Final = 7 * 86_400.0


class KernelCacheLocator:
    """Locates the cache files of functions inside this package, and leaves all other functions to numba.

    Implements the interface of numba's cache locators, which numba calls for each function with `cache=True`.
    """

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._path = Path(py_file).resolve()
        self._line = py_func.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "KernelCacheLocator | None":
        """Return a locator, or None for a function outside this package."""
        if not Path(py_file).resolve().is_relative_to(_PACKAGE):
            return None
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        """Return the directory of the function's cache files. Each source folder has one, as file names may repeat."""
        return str(folder() / "-".join(self._path.relative_to(_PACKAGE).parent.parts))

    def ensure_cache_path(self) -> None:
        """Create the directory. It may have been pruned while this process ran. Raises OSError."""
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        """Return a digest of the function's own file, which need not be one of the kernels."""
        return _digest_of_file(self._path)

    def get_disambiguator(self) -> str:
        """Return the line of the function, which distinguishes functions of one name in a file."""
        return str(self._line)


def install() -> None:
    """Make numba use `KernelCacheLocator` for this package. Must run before the first kernel is defined."""
    ours = f"{__name__}.{KernelCacheLocator.__name__}"
    others = _config.CACHE_LOCATOR_CLASSES or ",".join(each.__name__ for each in caching.CacheImpl._locator_classes)
    if ours not in others.split(","):
        _config.CACHE_LOCATOR_CLASSES = f"{ours},{others}"


@cache
def digest() -> str:
    """Return the digest that names the folder: kernel sources, numba, Python and CPU."""
    parts = [
        numba.__version__,
        sys.implementation.cache_tag,
        *registry.cpu_target.target_context.codegen().magic_tuple(),
    ]
    for path in sorted(_KERNELS.rglob("*.py")):
        parts += [path.relative_to(_KERNELS).as_posix(), _digest_of_file(path)]
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


@cache
def folder() -> Path:
    """Return the folder of this digest, created and writable, and prune folders that are no longer used."""
    name = _PREFIX + digest()
    read_only = None
    for base in _bases():
        # Numba numbers the files of a function, so links to different builds of a folder must not be mixed.
        path = base / (name if read_only is None else f"{name}-{_identity(read_only)}")
        try:
            is_new = not path.exists()
            path.mkdir(parents=True, exist_ok=True)
            os.utime(path)
            tempfile.TemporaryFile(dir=path).close()
        except OSError:
            read_only = read_only or (path if path.is_dir() else None)
            continue
        if is_new:
            if read_only is not None:
                _link_files(read_only, path)
            prune(base)
        return path
    raise RuntimeError(
        f"expected a writable folder for compiled kernels, tried {', '.join(map(str, _bases()))}: "
        "set NUMBA_CACHE_DIR to a writable directory"
    )


def prune(base: Path) -> list[Path]:
    """Remove the folders of other digests that were not used for a week and return them. The most recent are kept."""
    own = _PREFIX + digest()
    others = [each for each in base.glob(_PREFIX + "*") if not each.name.startswith(own) and each.is_dir()]
    dated = sorted(((_last_used(each), each) for each in others), reverse=True)
    removed = [each for used, each in dated[_KEPT_FOLDERS:] if time.time() - used > _UNUSED_SECONDS]
    for each in removed:
        # Another process may prune at the same time.
        shutil.rmtree(each, ignore_errors=True)
    return removed


def _bases() -> Iterator[Path]:
    if _config.CACHE_DIR:
        yield Path(_config.CACHE_DIR)
    yield Path(_user_directories("neardup", appauthor=False).user_cache_dir)
    private = Path(tempfile.gettempdir()) / f"neardup-{os.getuid()}"
    if _is_private(private):
        yield private


def _is_private(path: Path) -> bool:
    """Create a directory for this user alone; return whether nobody else can have written files to it.

    Cached kernels are unpickled, so files that another user placed there could execute code.
    """
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _identity(folder: Path) -> str:
    """Return a digest that changes when a folder is filled again, as by another build of an image."""
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    found = [f"{each.relative_to(folder)} {each.stat().st_size} {each.stat().st_mtime_ns}" for each in files]
    return hashlib.sha256("\0".join(found).encode()).hexdigest()[:8]


def _link_files(source: Path, target: Path) -> None:
    # Numba replaces files by renaming, which replaces a link and leaves the file that it points to.
    for path in source.rglob("*"):
        link = target / path.relative_to(source)
        if path.is_dir():
            link.mkdir(exist_ok=True)
        elif path.name != LOCK and not link.exists():
            link.symlink_to(path)


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@cache
def _digest_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load() -> int:
    """Load all cached machine code of the kernels in imported modules of this package; return the number of functions.

    Numba otherwise loads a kernel in its first call, which then takes longer.
    """
    machine = registry.cpu_target.target_context.codegen().magic_tuple()
    loaded = 0
    for kernel in _kernels():
        for arguments, compiled_for, _ in kernel._cache._cache_file._load_index():
            if compiled_for == machine:
                kernel.compile(arguments)
                loaded += 1
    return loaded


def file_count() -> int:
    """Return the number of compiled functions in the cache."""
    return sum(1 for _ in folder().rglob("*.nbc"))


def _kernels() -> Iterator[Any]:
    package = __name__.partition(".")[0]
    for name, module in sorted(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            for each in list(vars(module).values()):
                if isinstance(each, Dispatcher) and each.__module__ == name:
                    yield each

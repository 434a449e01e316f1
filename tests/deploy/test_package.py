"""Tests of wheel and sdist: built from the checkout, installed in an empty environment, and used in another folder."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import neardup

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "deploy/lock/runtime.txt"
NO_INDEX = "connection broken by"
"""Part of pip's message about a package index that cannot be reached."""


def run(*command: object, cwd: Path, check: bool = True, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run a command without variables and paths of this checkout in its environment."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NEARDUP_", "PYTHON"))}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=inherited | environ, capture_output=True, text=True, timeout=570,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0 or not check, f"{command}: {done.stdout}{done.stderr}"
    return done


def build(source: Path, target: Path, *kinds: str) -> Path:
    """Build with the backend of the locked environment, without isolation and without a network."""
    run(sys.executable, "-m", "hatchling", "build", "-d", target, *(f"-t{kind}" for kind in kinds), cwd=source)
    return target


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("dist"), "sdist", "wheel")


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_the_wheel_has_exactly_the_packages_their_data_and_the_licence(built: Path) -> None:
    names = set(content(only(built, "*.whl")))
    info = f"neardup-{neardup.__version__}.dist-info"
    assert {"neardup/py.typed", "neardup/text/unicode_tables.npz", f"{info}/licenses/LICENSE"} <= names
    assert {name.split("/")[0] for name in names} == {"neardup", "neardup_services", info}
    sources = {
        path.relative_to(folder).as_posix()
        for folder in (ROOT / "shared", ROOT / "services")
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and "egg-info" not in str(path)
    }
    assert {name for name in names if not name.startswith(info)} == sources


def test_the_sdist_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(only(built, "*.tar.gz")) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", "tests", "deploy"} <= set(os.listdir(source))
    assert content(only(build(source, tmp_path / "again", "wheel"), "*.whl")) == content(only(built, "*.whl"))


class Installed:
    """An environment with the wheel and the locked packages, and a separate working folder."""

    def __init__(self, folder: Path) -> None:
        self.environment, self.work, self._cache = folder / "environment", folder / "work", folder / "cache"
        self.bin = self.environment / "bin"
        self.work.mkdir()
        (folder / "home").mkdir()
        self._home = folder / "home"

    def run(self, program: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
        own = {
            "NUMBA_CACHE_DIR": str(self._cache),
            "HOME": str(self._home),
            "XDG_CACHE_HOME": str(self._home / "cache"),
        }
        return run(self.bin / program, *arguments, cwd=self.work, check=False, **own)

    def files(self) -> dict[Path, tuple[int, int]]:
        """Return size and modification time of each installed file."""
        found = [path for path in self.environment.rglob("*") if path.is_file() and not path.is_symlink()]
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}

    def compiled(self) -> int:
        return sum(1 for _ in self._cache.rglob("*.nbc"))


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """Provide an environment that is read-only after the installation, like a system administered by root."""
    folder = tmp_path_factory.mktemp("installed")
    new = Installed(folder)
    venv.create(new.environment, with_pip=True)
    pip = (new.bin / "python", "-m", "pip", "--disable-pip-version-check", "--retries", "1", "install", "--quiet")
    done = run(*pip, "--require-hashes", "--requirement", LOCK, cwd=folder, check=False)
    if done.returncode and NO_INDEX in done.stderr:
        pytest.skip("no package index can be reached to install the locked packages from")
    assert done.returncode == 0, done.stderr
    run(*pip, "--no-deps", "--no-index", only(built, "*.whl"), cwd=folder)
    _chmod(new.environment, 0o555)
    yield new
    _chmod(new.environment, 0o755)
    shutil.rmtree(folder)  # several hundred megabytes


def _chmod(folder: Path, mode: int) -> None:
    for parent, _, names in os.walk(folder):
        for path in [Path(parent), *(Path(parent) / name for name in names)]:
            if not path.is_symlink():
                path.chmod(mode)


def test_an_installed_wheel_works_from_an_unrelated_folder_and_writes_nothing_to_itself(installed: Installed) -> None:
    before = installed.files()
    assert installed.run("neardup", "--version").stdout == f"neardup, version {neardup.__version__}\n"
    assert "NEARDUP_HAMMING " in installed.run("neardup", "settings").stdout
    assert "dedup" in installed.run("neardup", "--help").stdout

    text = "one two three four five six seven eight nine ten eleven twelve"
    pages = [{"url": f"https://{host}.example/", "text": text} for host in "ab"]
    (installed.work / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    done = installed.run("neardup", "dedup", "pages.jsonl", "--out", "verdicts.jsonl")
    assert done.returncode == 0, done.stderr
    verdicts = [json.loads(line) for line in (installed.work / "verdicts.jsonl").read_text().splitlines()]
    assert {verdict["document"]: verdict["verdict"] for verdict in verdicts} == {"0:0": "unique", "0:1": "duplicate"}

    example = library_example()
    (installed.work / "example.py").write_text(example)
    done = installed.run("python", "example.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "duplicate same-text\n"

    assert installed.compiled() > 50, "expected the kernel cache in NUMBA_CACHE_DIR"
    assert installed.files() == before


def test_only_the_installed_package_is_imported(installed: Installed) -> None:
    where = "import neardup, neardup_services; print(neardup.__file__, neardup_services.__file__)"
    for path in installed.run("python", "-c", where).stdout.split():
        assert Path(path).is_relative_to(installed.environment)


def library_example() -> str:
    """Return the library example of the README."""
    found = re.search(r"As a library:\n\n((?:    .*\n|\n)+)", (ROOT / "README.md").read_text())
    assert found is not None
    return textwrap.dedent(found[1]).rstrip() + "\n"

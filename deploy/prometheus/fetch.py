"""Prometheus without Docker or root: the programs on the PATH, or those of Debian's package without installation.

    python -m deploy.prometheus.fetch        # prints the directory with prometheus and promtool

Needs only the standard library. The package is cached under $XDG_CACHE_HOME/neardup (default ~/.cache/neardup).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = ("prometheus", "promtool")
FETCH_SECONDS = 300


class FetchError(Exception):
    """Prometheus is not available; the message explains why."""


def programs() -> Path:
    """Return the directory with the programs, which are fetched on first use. Raises FetchError."""
    found = [shutil.which(name) for name in PROGRAMS]
    if all(found):
        return Path(str(found[0])).parent
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neardup" / "prometheus"
    if not cache.is_dir():
        _fetch(cache)
    return cache / "usr" / "bin"


def _fetch(cache: Path) -> None:
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise FetchError(f"expected prometheus and promtool on the PATH, or {tool} to fetch them; install either")
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as work:
        _run(["apt-get", "download", "prometheus"], work)
        packages = list(Path(work).glob("*.deb"))
        if len(packages) != 1:
            raise FetchError(
                f"expected one package from apt-get download, got {len(packages)}; run apt-get update first"
            )
        unpacked = Path(work) / "unpacked"
        _run(["dpkg-deb", "--extract", str(packages[0]), str(unpacked)], work)
        try:
            unpacked.rename(cache)
        except OSError:
            # Another process may have been faster.
            if not cache.is_dir():
                raise


def _run(command: list[str], directory: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"{command[0]} did not end within {FETCH_SECONDS} s; check the network") from error
    if done.returncode != 0:
        raise FetchError(
            f"{' '.join(command[:2])} ended with exit code {done.returncode}: {done.stderr.strip()[-500:]}"
        )


if __name__ == "__main__":
    try:
        print(programs())
    except FetchError as error:
        sys.exit(f"prometheus: {error}")

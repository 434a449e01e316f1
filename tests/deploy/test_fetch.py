"""Tests of the sources of Prometheus: the PATH, the cache, a Debian package; and of the error if there is none."""

from pathlib import Path

import pytest

from deploy.prometheus import fetch


def program(folder: Path, name: str, script: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder on the PATH besides the system's shell; the cache is empty."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "bin"


def test_a_program_on_the_path_is_used(path: Path) -> None:
    for name in fetch.PROGRAMS:
        program(path, name)
    assert fetch.programs() == path


def test_a_cached_program_is_used(path: Path, tmp_path: Path) -> None:
    program(path, "prometheus")  # not usable without promtool
    folder = tmp_path / "cache/neardup/prometheus/usr/bin"
    program(folder, "promtool")
    assert fetch.programs() == folder


def test_the_package_is_fetched_and_unpacked(path: Path, tmp_path: Path) -> None:
    program(path, "apt-get", ": > prometheus_1_all.deb")
    program(path, "dpkg-deb", "/bin/mkdir -p $3/usr/bin; : > $3/usr/bin/promtool")
    assert (fetch.programs() / "promtool").exists()
    assert [each.name for each in (tmp_path / "cache/neardup").iterdir()] == ["prometheus"]


def test_without_debian_there_is_a_clear_error(path: Path) -> None:
    with pytest.raises(fetch.FetchError, match="expected prometheus and promtool on the PATH, or apt-get"):
        fetch.programs()


@pytest.mark.parametrize(("script", "expected"), [("echo no network >&2; exit 100", "no network"), ("true", "got 0")])
def test_a_failed_fetch_leaves_nothing_behind(path: Path, tmp_path: Path, script: str, expected: str) -> None:
    program(path, "apt-get", script)
    program(path, "dpkg-deb")
    with pytest.raises(fetch.FetchError, match=expected):
        fetch.programs()
    assert list((tmp_path / "cache/neardup").iterdir()) == []

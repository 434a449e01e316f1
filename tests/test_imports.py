"""Modules that the light parts of the package load, each in a process of its own."""

import json
import subprocess
import sys

import pytest

import neardup

HEAVY = {"numba", "numpy", "pyarrow", "fsspec", "aiokafka", "faust", "mode", "uvloop", "aiohttp", "rocksdict"}


def modules_after(program: str, *arguments: str) -> list[str]:
    """Run a program in a new process and return the modules that are loaded at its end."""
    report = (
        "import atexit, json, sys; atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))"
    )
    command = [sys.executable, "-c", f"{report}\n{program}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules: list[str] = json.loads(done.stderr.splitlines()[-1])
    return modules


def ours(modules: list[str]) -> list[str]:
    return [each for each in modules if each.partition(".")[0] in ("neardup", "neardup_services")]


def heavy(modules: list[str]) -> set[str]:
    return HEAVY & set(modules)


def test_a_page_is_imported_without_the_rest_of_the_package() -> None:
    modules = modules_after("from neardup import Page")
    assert ours(modules) == ["neardup", "neardup.types"]
    assert heavy(modules) == set()


@pytest.mark.parametrize(("command", "most"), [("--help", 6), ("--version", 6), ("settings", 15)])
def test_a_light_command_imports_no_heavy_library(command: str, most: int) -> None:
    modules = modules_after("import sys\nfrom neardup_services.cli import main\nmain()", command)
    assert len(ours(modules)) <= most, ours(modules)
    assert heavy(modules) == set()


def test_completion_of_a_command_imports_no_heavy_library() -> None:
    program = (
        "import os\nfrom neardup_services.cli import main\n"
        "os.environ.update(_NEARDUP_COMPLETE='bash_complete', COMP_WORDS='neardup de', COMP_CWORD='1')\n"
        "main(prog_name='neardup')"
    )
    modules = modules_after(program)
    assert len(ours(modules)) <= 6, ours(modules)
    assert heavy(modules) == set()


def test_the_check_notices_heavy_libraries() -> None:
    modules = modules_after("from neardup import Deduplicator")
    assert {"numba", "numpy", "pyarrow"} <= heavy(modules)
    assert len(ours(modules)) > 100


@pytest.mark.parametrize("name", neardup.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert name in dir(neardup)
    modules_after(f"from neardup import {name}")


def test_all_public_names_can_be_imported_at_once() -> None:
    modules_after(f"from neardup import *\nassert {{*globals()}} >= {set(neardup.__all__)!r}")


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="module 'neardup' has no attribute 'Paeg'"):
        neardup.Paeg  # type: ignore[attr-defined] # noqa: B018

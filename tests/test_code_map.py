"""The pages on architecture stay correct: every path that they name exists, and the code map names every package."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "shared" / "neardup"
ARCHITECTURE = ROOT / "deploy" / "docs" / "architecture"
PAGES = {str(path.relative_to(ARCHITECTURE)): path.read_text() for path in sorted(ARCHITECTURE.rglob("*.md"))}
OTHER_ROOTS = ("shared/", "services/", "deploy/", "tests/")


def paths_in(page: str) -> list[str]:
    """Return the paths of source files and folders in a page: in backticks, with a slash or the suffix of a module."""
    named = re.findall(r"`([a-z_]+(?:/[\w.-]+)*/?(?:\.py)?)`", page)
    return [each for each in named if "/" in each or each.endswith(".py")]


def resolved(path: str) -> Path:
    return ROOT / path if path.startswith(OTHER_ROOTS) else LIBRARY / path


@pytest.mark.parametrize("page", PAGES)
def test_every_path_in_the_architecture_pages_exists(page: str) -> None:
    missing = [path for path in paths_in(PAGES[page]) if not resolved(path).exists()]
    assert missing == []


def test_the_code_map_names_every_package() -> None:
    named = paths_in(PAGES["code-map.md"]) + re.findall(r"`(\w+)`", PAGES["code-map.md"])
    packages = {path.parent.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("__init__.py")} - {"."}
    unnamed = {
        package for package in packages if not any(name == package or name.startswith(f"{package}/") for name in named)
    }
    assert unnamed == set()


def test_paths_are_found_and_a_wrong_one_is_missed() -> None:
    assert paths_in("`log/kafka` and `types.py`, `tests/support/`, `NEARDUP_BROKER`, `page`, `neardup dedup`") == [
        "log/kafka", "types.py", "tests/support/",
    ]  # fmt: skip
    assert not resolved("log/none.py").exists()

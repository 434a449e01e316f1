"""Review of the lock files without a network, which includes no query for known vulnerabilities.

Every pin has hashes, and every package that is installed here has a licence that this project accepts. See
deploy/docs/operations/deployment.md for the limits of this review.
"""

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "deploy/lock").glob("*.txt"))
ALLOWED = re.compile(
    r"\b(apache|asl 2|bsd|mit|isc|mpl|mozilla public|psf|python software foundation|unlicense|zlib|0bsd|cc0|unicode)",
    re.IGNORECASE,
)


def pins(text: str) -> dict[str, str]:
    """Return for each pin (name, version and marker) the text after it, which has its hashes."""
    joined = text.replace("\\\n", " ")
    return {line.split(" --hash")[0].strip(): line for line in joined.splitlines() if line.strip()}


def unreviewed(text: str) -> list[str]:
    """Return the lines that are not pins with hashes."""
    shape = re.compile(r"[a-z0-9][a-z0-9._-]*(\[[a-z0-9,_-]+\])?==[\w.!+]+( ; [^#]+)?")
    return [
        pin
        for pin, line in pins(text).items()
        if not shape.fullmatch(pin) or not re.search(r"--hash=sha256:[0-9a-f]{64}", line)
    ]


def licence_of(name: str) -> str:
    """Return all licence statements of a package."""
    about = metadata(name)
    statements = [*(about.get_all("License-Expression") or ()), *(about.get_all("License") or ())]
    statements += [each for each in about.get_all("Classifier") or () if each.startswith("License")]
    # Some packages have the whole text in this field.
    return " ".join(each[:200] for each in statements)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_line_is_a_pin_with_hashes_and_no_address(lock: Path) -> None:
    assert unreviewed(lock.read_text()) == []
    assert "://" not in lock.read_text()


@pytest.mark.parametrize(
    "line",
    [
        "numpy==2.0.0\n", "numpy>=2.0 --hash=sha256:" + 64 * "0", "-e .\n", "--extra-index-url x\n",
        "pkg @ file:x --hash=sha256:" + 64 * "0", "numpy==2.0 --hash=md5:0",
    ],
)  # fmt: skip
def test_a_line_that_is_not_a_pin_with_hashes_is_detected(line: str) -> None:
    assert unreviewed(line)


@pytest.mark.parametrize("lock", ["runtime", "build"])
def test_all_packages_of_the_image_are_tested(lock: str) -> None:
    of_image, dev = ({*pins((ROOT / f"deploy/lock/{name}.txt").read_text())} for name in (lock, "dev"))
    assert of_image <= dev


def test_the_image_has_no_build_tools() -> None:
    runtime = {re.split(r"[\[=]", pin)[0] for pin in pins((ROOT / "deploy/lock/runtime.txt").read_text())}
    assert not runtime & {"pip", "setuptools", "wheel", "hatchling", "editables"}


def test_every_package_has_an_accepted_licence() -> None:
    unknown = {}
    for lock in LOCKS:
        for pin in pins(lock.read_text()):
            name = re.split(r"[\[=]", pin)[0]
            try:
                licence = licence_of(name)
            except PackageNotFoundError:
                continue  # for another platform, or a peer of the benchmarks
            if not ALLOWED.search(licence):
                unknown[name] = licence
    assert unknown == {}

"""Tests of `neardup fingerprint` and `neardup explain` with their outputs as text and as JSON."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from neardup_services.commands.explain import explain
from neardup_services.commands.fingerprint import fingerprint

TEXT = "the river rises in the hills to the north of the old town and runs for ninety miles to the sea " * 3


@pytest.fixture
def pages(tmp_path: Path) -> list[str]:
    """Write a page, the same text in other markup, one with a changed word, another text, and a short one."""
    made = {
        "a.html": f"<p>{TEXT}",
        "same.html": f"<div><b>{TEXT.upper()}</b></div>",
        "near.txt": TEXT.replace("ninety miles", "eighty miles", 1),
        "far.txt": " ".join(f"word{i}" for i in range(60)),
        "short.txt": "hello",
    }
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    return [str(tmp_path / name) for name in made]


def test_fingerprint_as_text(pages: list[str]) -> None:
    done = CliRunner().invoke(fingerprint, pages)
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0].startswith("signature version nd1;")
    assert lines[1][:16] == lines[2][:16] != lines[4][:16]
    assert "skipped: too short" in lines[5]


def test_fingerprint_as_json(pages: list[str]) -> None:
    done = CliRunner().invoke(fingerprint, ["--json", *pages])
    found = [json.loads(line) for line in done.output.splitlines()]
    assert found[0]["checksums"]["tokens"] == found[1]["checksums"]["tokens"]
    assert found[0]["checksums"]["content"] != found[1]["checksums"]["content"]
    assert len(found[0]["weights"]) == 64
    assert found[4]["skipped"] == "too short"
    assert "fingerprint" not in found[4]


def test_fingerprint_of_standard_input() -> None:
    done = CliRunner().invoke(fingerprint, ["-"], input=TEXT)
    assert done.exit_code == 0
    assert "tokens" in done.output


def test_missing_file() -> None:
    done = CliRunner().invoke(fingerprint, ["no-such-file"])
    assert done.exit_code == 1
    assert "no-such-file: expected a file" in done.output


@pytest.mark.parametrize(
    ("other", "verdict", "relation"),
    [(0, "duplicate", "identical"), (1, "duplicate", "same-text"), (3, "unique", None), (4, "skipped", None)],
)
def test_explain_verdicts(pages: list[str], other: int, verdict: str, relation: str | None) -> None:
    done = CliRunner().invoke(explain, ["--json", pages[0], pages[other]])
    found = json.loads(done.output)
    assert (found["verdict"], found["relation"]) == (verdict, relation)
    assert found["would_change"]


def test_explain_a_near_duplicate(pages: list[str]) -> None:
    found = json.loads(CliRunner().invoke(explain, ["--json", pages[0], pages[2]]).output)
    assert [(span["where"], span["words"]) for span in found["spans"] if span["where"] != "both"] == [
        ("a", ["ninety"]),
        ("b", ["eighty"]),
    ]
    assert found["hamming"] == len(found["bits"])
    assert all((bit["a"] >= 0) != (bit["b"] >= 0) for bit in found["bits"])
    assert 0.5 < found["resemblance"] < 1
    assert abs(found["resemblance"] - found["resemblance_by_mips"]) < 0.2
    assert found["because"]


def test_explain_as_text(pages: list[str]) -> None:
    output = CliRunner().invoke(explain, [pages[0], pages[2]]).output
    for expected in ("what would change it", "resemblance", "containment of a in b", "- ninety", "+ eighty", "bit "):
        assert expected in output


def test_explain_takes_one_page_from_standard_input(pages: list[str]) -> None:
    assert CliRunner().invoke(explain, [pages[0], "-"], input=TEXT).exit_code == 0
    assert CliRunner().invoke(explain, ["-", "-"], input=TEXT).exit_code == 2

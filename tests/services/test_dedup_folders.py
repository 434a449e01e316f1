"""Tests of `neardup dedup` on folders that grow between runs, with runs that are killed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest

from neardup.sample import sample_crawl
from tests.services.test_dedup_command import kinds, last, neardup

DIES = """
import os, sys
from neardup.embedded.embedded import Embedded
from neardup.runtime.runner import Runner
from neardup_services.cli import main

owner, method, calls = {"feed": Embedded, "save": Runner}[sys.argv[1]], sys.argv[1], int(sys.argv[2])
del sys.argv[1:3]
undisturbed = getattr(owner, method)

async def dying(*arguments):
    global calls
    await undisturbed(*arguments)
    calls -= 1
    if calls == 0:
        os._exit(9)

setattr(owner, method, dying)
main()
"""
"""The command, killed after a number of chunks that were fed, or of stages that were saved (four in each save)."""


def dies(after: str, calls: int, *arguments: object) -> None:
    command = [sys.executable, "-c", DIES, after, str(calls), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 9, done.stderr


def write(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def story(number: int) -> bytes:
    words = [f"word{number * 100 + each}" for each in range(60)]
    return f"<p>{' '.join(words)}</p>".encode()


def urls(out: Path) -> list[str]:
    found = last(out)
    return [found[f"0:{number}"]["url"].removeprefix("file:///") for number in range(len(found))]


def settled(out: Path) -> dict[str, tuple[Any, ...]]:
    return {name: (each["url"], each["verdict"], each["duplicate_of"]) for name, each in last(out).items()}


def test_a_file_that_sorts_before_the_old_ones_is_processed_and_no_file_twice(tmp_path: Path) -> None:
    folder, out = tmp_path / "pages", tmp_path / "out.jsonl"
    arguments = ("dedup", folder, "--state", tmp_path / "state", "--out", out, "--append")
    write(folder, "b.html", story(1))
    write(folder, "c.html", story(2))
    assert neardup(*arguments).returncode == 0
    write(folder, "a.html", story(3))
    write(folder, "b/d.html", story(1))
    done = neardup(*arguments)
    assert done.stdout.startswith("2 pages: 1 unique, 1 duplicate\n"), done.stdout + done.stderr
    assert "0 pages" in neardup(*arguments).stdout
    assert urls(out) == ["b.html", "c.html", "a.html", "b/d.html"]
    assert kinds(out) == ["unique", "unique", "unique", "duplicate"]
    done = neardup(*arguments, "--again")
    assert done.stdout.startswith("4 pages: 4 duplicate\n"), done.stdout
    assert urls(out)[4:] == ["a.html", "b.html", "c.html", "b/d.html"]


def test_processing_one_input_again_does_not_repeat_the_others(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, f"{name}.html", story(len(name)))
    arguments = ("--state", tmp_path / "state", "--out", tmp_path / "out.jsonl", "--append")
    assert neardup("dedup", tmp_path / "one", tmp_path / "two", *arguments).returncode == 0
    assert neardup("dedup", tmp_path / "one", "--again", *arguments).returncode == 0
    assert "0 pages" in neardup("dedup", tmp_path / "one", tmp_path / "two", *arguments).stdout
    assert urls(tmp_path / "out.jsonl") == ["one.html", "two.html", "one.html"]


@pytest.mark.parametrize("calls", [3, 6], ids=["at-the-start", "at-the-end"])
def test_a_run_with_again_that_is_killed_while_it_saves_loses_nothing(tmp_path: Path, calls: int) -> None:
    for name in ("a", "b"):
        write(tmp_path / "pages", f"{name}.html", story(ord(name)))
    (tmp_path / "c.jsonl").write_text(json.dumps({"url": "file:///c", "html": story(3).decode()}))
    arguments = ("dedup", tmp_path / "pages", tmp_path / "c.jsonl", "--state", tmp_path / "state")
    out = tmp_path / "out.jsonl"
    assert neardup(*arguments, "--out", out).returncode == 0
    dies("save", calls, *arguments, "--out", out, "--append", "--again")
    # The run is resumed without --again, or started once more by the same command.
    assert neardup(*arguments, "--out", out, "--append", *(["--again"] if calls == 3 else [])).returncode == 0
    assert urls(out) == ["a.html", "b.html", "c"] * 2
    assert kinds(out) == ["unique"] * 3 + ["duplicate"] * 3


def test_the_count_of_older_releases_is_continued(tmp_path: Path) -> None:
    folder, state, out = tmp_path / "pages", tmp_path / "state", tmp_path / "out.jsonl"
    arguments = ("dedup", folder, "--state", state, "--out", out, "--append")
    for number in range(4):
        write(folder, f"{number}.html", story(number))
    assert neardup(*arguments).returncode == 0
    (record,) = (state / "folders").iterdir()  # older releases did not write it
    record.unlink()
    (state / "folders").rmdir()
    assert json.loads((state / "embedded.json").read_text())["notes"] == {str(folder): 3}
    write(folder, "4.html", story(4))
    assert neardup(*arguments).stdout.startswith("1 pages: 1 unique")
    write(folder, "0.htm", story(5))
    assert neardup(*arguments).stdout.startswith("1 pages: 1 unique")
    assert urls(out) == ["0.html", "1.html", "2.html", "3.html", "4.html", "0.htm"]


@pytest.mark.parametrize(
    ("after", "calls", "kept"), [("save", 2, 256), ("feed", 2, 256), ("save", 5, 300), ("save", 10, 400)]
)
def test_a_killed_run_loses_and_repeats_no_file_of_a_folder_that_grows(
    tmp_path: Path, after: str, calls: int, kept: int
) -> None:
    """The pages of a save that was cut off must get the same numbers again: some stages have saved them."""
    first, second, out = tmp_path / "first", tmp_path / "second", tmp_path / "out.jsonl"
    contents = [made.page.content for made in sample_crawl(420, seed=5, mean_bytes=8000)]
    for number, content in enumerate(contents[:400]):
        write(first if number < 300 else second, f"{number:03}.html", content)
    arguments = ("dedup", first, second, "--state", tmp_path / "state", "--out", out, "--save-seconds")
    dies(after, calls, *arguments, 0)
    for number, content in enumerate(contents[400:]):
        write(first if number % 2 else second, f"{number * 20:03}-new.html", content)
    done = neardup(*arguments, 0)
    assert done.returncode == 0, done.stderr
    found = urls(out)
    assert len(found) == len(set(found)) == 420
    assert found[:kept] == [f"{number:03}.html" for number in range(kept)]
    # One run over the same pages in the same order comes to the same verdicts.
    files = {path.name: path.read_bytes() for path in tmp_path.glob("*/*.html")}
    pages = [{"url": f"file:///{name}", "html": files[name], "content_type": "text/html"} for name in found]
    (tmp_path / "whole.msgpack").write_bytes(b"".join(map(msgpack.packb, pages)))
    assert neardup("dedup", tmp_path / "whole.msgpack", "--out", tmp_path / "whole").returncode == 0
    assert settled(out) == settled(tmp_path / "whole")

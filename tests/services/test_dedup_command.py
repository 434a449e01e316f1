"""Tests of `neardup dedup` from input files to verdicts, and of further runs on later days."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.services.workers import BIN

PAGES = 300


def neardup(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [str(BIN / "neardup"), *map(str, arguments)]
    environment = os.environ | {"NEARDUP_PROCESSES": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a sample crawl, its truth, and the same pages in two files."""
    directory = tmp_path_factory.mktemp("crawl")
    made = neardup(
        "sample", "--pages", PAGES, "--seed", 4, "--mean-bytes", 8000, "--out", directory / "pages.jsonl",
        "--truth", directory / "truth.jsonl",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    lines = (directory / "pages.jsonl").read_bytes().splitlines(keepends=True)  # str would split at more characters
    (directory / "monday.jsonl").write_bytes(b"".join(lines[:200]))
    (directory / "tuesday.jsonl").write_bytes(b"".join(lines[200:]))
    return directory


def last(path: Path) -> dict[str, dict[str, Any]]:
    verdicts = [json.loads(line) for line in path.read_text().splitlines()]
    return {each["document"]: each for each in sorted(verdicts, key=lambda each: each["revision"])}


def kinds(path: Path) -> list[str]:
    found = last(path)
    return [found[f"0:{number}"]["verdict"] for number in range(len(found))]


@pytest.fixture(scope="module")
def whole(crawl: Path) -> list[str]:
    """Return the verdicts of one run over everything."""
    done = neardup("dedup", crawl / "pages.jsonl", "--out", crawl / "whole.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    found = kinds(crawl / "whole.jsonl")
    assert (summary["pages"], len(found)) == (PAGES, PAGES)
    assert summary["by_kind"] == {kind: found.count(kind) for kind in ("unique", "duplicate", "skipped")}
    return found


def test_the_verdicts_are_correct(crawl: Path, whole: list[str]) -> None:
    scored = neardup("score", crawl / "whole.jsonl", crawl / "truth.jsonl", "--json")
    assert scored.returncode == 0, scored.stderr
    overall = json.loads(scored.stdout.splitlines()[0])
    overall = overall.get("all", overall)
    assert overall["precision"] >= 0.99
    assert overall["recall"] >= 0.9


def test_the_next_day_resumes_from_the_state(crawl: Path, whole: list[str], tmp_path: Path) -> None:
    for day in ("monday", "tuesday", "tuesday"):  # pages that were processed are not processed again
        done = neardup(
            "dedup", crawl / f"{day}.jsonl", "--state", tmp_path / "state", "--out", tmp_path / "out.jsonl", "--append"
        )
        assert done.returncode == 0, done.stderr
    assert "0 pages" in done.stdout
    assert kinds(tmp_path / "out.jsonl") == whole
    done = neardup(
        "dedup", crawl / "monday.jsonl", "--again", "--state", tmp_path / "state", "--out", tmp_path / "more"
    )
    assert "0 unique" not in done.stdout
    assert {verdict["verdict"] for verdict in last(tmp_path / "more").values()} == {"duplicate", "skipped"}


def test_a_run_resumes_after_ctrl_c(crawl: Path, whole: list[str], tmp_path: Path) -> None:
    arguments = ("--state", str(tmp_path / "state"), "--out", str(tmp_path / "out.jsonl"))
    process = subprocess.Popen(
        [str(BIN / "neardup"), "dedup", "-", *arguments],
        env=os.environ | {"NEARDUP_PROCESSES": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write((crawl / "monday.jsonl").read_bytes())
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not (tmp_path / "out.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    assert process.wait(60) == 130
    assert b"run the command again to resume" in process.stderr.read()
    process.stderr.close()
    taken = len(last(tmp_path / "out.jsonl"))
    lines = (crawl / "pages.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "rest.jsonl").write_bytes(b"".join(lines[taken:]))
    done = neardup("dedup", tmp_path / "rest.jsonl", *arguments)
    assert done.returncode == 0, done.stderr
    assert kinds(tmp_path / "out.jsonl") == whole


def test_unusable_items_are_listed_and_the_others_are_processed(tmp_path: Path) -> None:
    good = {"url": "https://a.example/", "text": "one two three four five six seven eight nine ten eleven twelve"}
    (tmp_path / "in.jsonl").write_text(
        json.dumps(good) + "\nnot json\n" + json.dumps(good | {"url": "https://b.example/"})
    )
    done = neardup(
        "dedup", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl", "--dead-letters", tmp_path / "letters.jsonl"
    )
    assert done.returncode == 3, done
    assert "not usable: 1" in done.stdout
    [letter] = [json.loads(line) for line in (tmp_path / "letters.jsonl").read_text().splitlines()]
    assert (letter["number"], "JSON" in letter["reason"]) == (2, True)
    assert kinds(tmp_path / "out.jsonl") == ["unique", "duplicate"]


def test_verdicts_go_to_standard_output_and_the_summary_does_not(crawl: Path) -> None:
    done = neardup("dedup", crawl / "tuesday.jsonl")
    assert all(line.startswith("{") for line in done.stdout.splitlines())
    assert "100 pages" in done.stderr


def test_standard_input_is_new_in_each_run(crawl: Path, whole: list[str], tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        done = subprocess.run(
            [
                str(BIN / "neardup"),
                "dedup",
                "-",
                "--state",
                str(tmp_path / "state"),
                "--out",
                str(tmp_path / "out.jsonl"),
                "--append",
            ],
            env=os.environ | {"NEARDUP_PROCESSES": "1"},
            input=(crawl / f"{day}.jsonl").read_bytes(),
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert kinds(tmp_path / "out.jsonl") == whole


def test_an_unwritable_output_is_one_clear_line(crawl: Path, tmp_path: Path) -> None:
    done = neardup("dedup", crawl / "tuesday.jsonl", "--out", tmp_path / "no" / "such" / "place")
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_input_is_one_clear_line(tmp_path: Path) -> None:
    done = neardup("dedup", tmp_path / "nothing.jsonl")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_a_file_of_another_run_is_unchanged_unless_the_options_allow_it(crawl: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    first, second = crawl / "monday.jsonl", crawl / "tuesday.jsonl"
    assert neardup("dedup", first, "--out", out).returncode == 0
    before = out.read_bytes()
    refused = neardup("dedup", second, "--out", out)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"Error: {out}: expected no file or an empty one, got ")
    assert "--append" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert out.read_bytes() == before
    # The same holds for a state that did not write the file, or whose run was completed.
    state = ("--state", tmp_path / "state")
    assert neardup("dedup", second, "--out", out, *state).returncode == 1
    assert out.read_bytes() == before
    assert neardup("dedup", second, "--out", out, "--append", *state).returncode == 0
    assert out.read_bytes().startswith(before)
    assert len(out.read_bytes().splitlines()) == 300
    assert neardup("dedup", first, "--out", out, *state).returncode == 1
    assert neardup("dedup", first, "--out", out, "--overwrite", *state).returncode == 0
    assert len(out.read_bytes().splitlines()) == 200


def test_a_dead_letters_file_of_another_run_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("not json\n")
    letters = tmp_path / "letters.jsonl"
    letters.write_text('{"mine": true}\n')
    arguments = ("dedup", tmp_path / "in.jsonl", "--dead-letters", letters)
    refused = neardup(*arguments)
    assert refused.returncode == 1
    assert f"{letters}: expected no file or an empty one" in refused.stderr
    assert letters.read_text() == '{"mine": true}\n'
    assert neardup(*arguments, "--append").returncode == 3
    assert len(letters.read_text().splitlines()) == 2


def test_output_options_that_would_destroy_something_are_refused(crawl: Path, tmp_path: Path) -> None:
    pages, out = tmp_path / "pages.jsonl", tmp_path / "out.jsonl"
    pages.write_bytes((crawl / "tuesday.jsonl").read_bytes())
    for arguments, message in (
        (("--out", pages, "--overwrite"), "expected an output file, got one of the inputs"),
        (("--out", out, "--dead-letters", tmp_path / "x" / ".." / "out.jsonl"), "got the same"),
        (("--out", out, "--append", "--overwrite"), "expected --append or --overwrite, got both"),
    ):
        (tmp_path / "x").mkdir(exist_ok=True)
        refused = neardup("dedup", pages, *arguments)
        assert refused.returncode in (1, 2)
        assert message in refused.stderr
        assert "Traceback" not in refused.stderr
    assert pages.read_bytes() == (crawl / "tuesday.jsonl").read_bytes()


def test_an_incomplete_last_line_is_not_extended(crawl: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text('{"url": "https://a.exa')
    refused = neardup("dedup", crawl / "tuesday.jsonl", "--out", out, "--append")
    assert refused.returncode == 1
    assert "got an incomplete last line" in refused.stderr
    assert out.read_text() == '{"url": "https://a.exa'


def test_empty_files_pipes_and_devices_are_written_to(crawl: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.touch()
    assert neardup("dedup", crawl / "tuesday.jsonl", "--out", out, "--dead-letters", "/dev/null").returncode == 0
    assert len(out.read_bytes().splitlines()) == 100
    done = neardup("dedup", crawl / "tuesday.jsonl", "--out", "/dev/stdout")
    assert done.stdout.count('"verdict"') == 100, done.stderr


@pytest.mark.parametrize("save_seconds", ["0", "3600"], ids=["after-some-saves", "before-the-first-save"])
def test_a_killed_run_is_resumed_and_its_file_is_complete(
    crawl: Path, whole: list[str], tmp_path: Path, save_seconds: str
) -> None:
    out = tmp_path / "out.jsonl"
    pages = (crawl / "pages.jsonl").read_bytes()
    half = len(b"".join(pages.splitlines(keepends=True)[:280]))
    # The second half is sent only after the kill, so the run is interrupted in the middle.
    os.mkfifo(tmp_path / "pages.jsonl")
    arguments = [str(BIN / "neardup"), "dedup", str(tmp_path / "pages.jsonl"), "--state", str(tmp_path / "state")]
    arguments += ["--out", str(out), "--save-seconds", save_seconds]
    process = subprocess.Popen(
        arguments, env=os.environ | {"NEARDUP_PROCESSES": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with (tmp_path / "pages.jsonl").open("wb", buffering=0) as pipe:
        pipe.write(pages[:half])
        deadline = time.monotonic() + 100
        awaited, size = (out, 60_000) if save_seconds == "0" else (tmp_path / "state" / "outputs.json", 1)
        while time.monotonic() < deadline and not (awaited.exists() and awaited.stat().st_size >= size):
            time.sleep(0.05)
        process.kill()
        _, problems = process.communicate(timeout=30)
    assert awaited.stat().st_size >= size, problems
    with out.open("ab") as file:  # a block of the output buffer may end anywhere
        file.write(b'{"document": "0:0", "revision": 0, "verdict": "skipped"}\n{"url": "https://torn.exa')
    (tmp_path / "pages.jsonl").unlink()
    (tmp_path / "pages.jsonl").write_bytes(pages)
    done = subprocess.run(
        arguments, env=os.environ | {"NEARDUP_PROCESSES": "1"}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert kinds(out) == whole
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({(line["document"], line["revision"]) for line in lines}) == len(lines)
    # The output file is complete now, so a further run is refused.
    assert subprocess.run(arguments, capture_output=True, timeout=60, check=False).returncode == 1


def test_a_file_that_replaced_that_of_an_interrupted_run_is_not_truncated(crawl: Path, tmp_path: Path) -> None:
    out, state = tmp_path / "out.jsonl", tmp_path / "state"
    arguments = ("dedup", crawl / "tuesday.jsonl", "--out", out, "--state", state)
    assert neardup(*arguments).returncode == 0
    record = json.loads((state / "outputs.json").read_text())
    (state / "outputs.json").write_text(json.dumps(record | {"complete": False}))
    out.rename(tmp_path / "moved.jsonl")
    other = b"notes of mine\n" * 20_000
    out.write_bytes(other)
    refused = neardup(*arguments)
    assert refused.returncode == 1
    assert "bytes that the interrupted run wrote" in refused.stderr
    assert out.read_bytes() == other
    moved = neardup("dedup", crawl / "tuesday.jsonl", "--out", tmp_path / "new.jsonl", "--state", state)
    assert moved.returncode == 0
    assert f"the interrupted run wrote to {out}" in moved.stderr


def test_a_second_run_on_a_state_directory_is_refused_and_changes_nothing(crawl: Path, tmp_path: Path) -> None:
    state, out = tmp_path / "state", tmp_path / "out.jsonl"
    arguments = ("--state", state, "--out", out)
    first = subprocess.Popen(
        [str(BIN / "neardup"), "dedup", "-", *map(str, arguments)],
        env=os.environ | {"NEARDUP_PROCESSES": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not (state / "outputs.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    for other in (("dedup", crawl / "tuesday.jsonl", *arguments, "--overwrite"), ("reshard", "--state", state)):
        refused = neardup(*other)
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"Error: {state}: already in use by process {first.pid}: ")
        assert "delete" not in refused.stderr
    assert neardup("status", "--state", state).returncode == 0
    _, problems = first.communicate((crawl / "monday.jsonl").read_bytes(), timeout=60)
    assert first.returncode == 0, problems
    assert len(last(out)) == 200

"""Tests of `neardup lookup`, `similar`, `moved` and `changes`."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from neardup.types import Page
from neardup_services.cli import main
from tests.offline.by_hand import document_of, run_pass
from tests.offline.test_index_writer import HOSTILE
from tests.support.documents import text_of

STORY = text_of(1, 300)
COMMANDS = (
    ["lookup", "http://a.example/"],
    ["moved", "http://a.example/"],
    ["changes", "http://a.example/"],
    ["changes"],
)


def ask(*arguments: object, text: bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], input=text)


def answer(*arguments: object, text: bytes | None = None) -> Any:
    done = ask(*arguments, "--json", text=text)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a pass over a page under many urls, one of which has another page later."""
    directory = tmp_path_factory.mktemp("state")
    urls = ["http://a.example/", "http://b.example/", *(url for url in HOSTILE if url)]
    pages = [Page(url, text=" ".join(STORY), fetched_at="2026-01-01T00:00:00Z") for url in urls]
    pages.append(Page("http://a.example/", text=" ".join(text_of(2, 300)), fetched_at="2026-01-02T00:00:00Z"))
    run_pass(directory, [document_of(number, page) for number, page in enumerate(pages)])
    return directory


def test_a_url_is_looked_up(state: Path) -> None:
    body = answer("lookup", "http://b.example/", "--state", state)
    assert body["documents"][0]["relation"] == "identical"
    assert body["clusters"][0]["representative"] == {"url": "http://a.example/", "document": "0:0"}
    shown = ask("lookup", "http://b.example/", "--state", state)
    assert shown.exit_code == 0
    for word in ("cluster 0:0", "represented by http://a.example/", "identical"):
        assert word in shown.output


def test_a_moved_page_is_found(state: Path) -> None:
    assert answer("moved", "http://b.example/", "--state", state)["moved"]
    shown = ask("moved", "http://b.example/", "--state", state)
    assert shown.exit_code == 0
    assert "and since at" in shown.output
    assert "not found elsewhere" in ask("moved", "http://a.example/", "--state", state).output


def test_changes_of_a_url_and_of_all(state: Path) -> None:
    versions = answer("changes", "http://a.example/", "--state", state)["versions"]
    assert [each["change"] for each in versions] == [None, "changed"]
    assert answer("changes", "--state", state)["by_change"]["changed"] == 1
    assert "changed" in ask("changes", "http://a.example/", "--state", state).output
    assert "a.example" in ask("changes", "--state", state).output


@pytest.mark.parametrize("url", [url for url in HOSTILE if url], ids=lambda url: ascii(url)[:30])
def test_a_hostile_url_is_printed_without_terminal_control_sequences(state: Path, url: str) -> None:
    for command in ("lookup", "moved", "changes"):
        assert answer(command, url, "--state", state)["url"] == url
        shown = ask(command, url, "--state", state)
        assert shown.exit_code == 0
        assert all(each.isprintable() or each == "\n" for each in shown.output)


@pytest.mark.parametrize("command", ["lookup", "moved", "changes"])
def test_an_unknown_url_is_a_clear_error(state: Path, command: str) -> None:
    done = ask(command, "http://nowhere.example/", "--state", state)
    assert done.exit_code == 1
    assert "no document has the URL 'http://nowhere.example/'" in done.output


@pytest.mark.parametrize("command", [*COMMANDS, ["similar", "-"]], ids=" ".join)
def test_before_the_first_pass_there_is_a_clear_error(tmp_path: Path, command: list[str]) -> None:
    done = ask(*command, "--state", tmp_path, text=" ".join(STORY).encode())
    assert done.exit_code == 1
    assert "run `neardup recluster`" in done.output


def test_the_state_directory_is_that_of_the_settings_by_default(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_STATE", str(state))
    assert answer("lookup", "http://b.example/")["url"] == "http://b.example/"


def test_a_missing_file_is_a_clear_error(state: Path) -> None:
    done = ask("similar", state / "nothing.html", "--state", state)
    assert done.exit_code == 1
    assert "cannot read it" in done.output


def test_a_text_is_compared_with_the_documents(state: Path) -> None:
    text = " ".join(["just", *STORY]).encode()
    (found,) = answer("similar", "-", "--state", state, text=text)["documents"]
    assert (found["url"], found["relation"], found["cluster"]) == ("http://a.example/", "same-shingles", "0:0")
    shown = ask("similar", "-", "--state", state, text=text)
    assert "http://a.example/" in shown.output
    assert "cannot be compared: empty" in ask("similar", "-", "--state", state, text=b"").output

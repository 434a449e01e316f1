"""Tests of the operations pages: their commands, files, settings and alerts exist, and every alert has a section."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from neardup.errors import record_reasons
from neardup.settings import Settings
from neardup_services.cli import main
from tests.support.commands import subcommand

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "deploy/docs/operations"
PAGES = {path.stem: path.read_text() for path in sorted(OPERATIONS.glob("*.md"))}
ALL = "\n".join(PAGES.values())
RUNBOOK = PAGES["runbook"]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]
PROCEDURES = {
    "Scale out": "runbook",
    "Restore from nothing": "runbook",
    "Sizing": "deployment",
    "Compiled kernels": "deployment",
    "On Kafka": "resharding",
    "A state directory": "resharding",
    "Rolling restart": "upgrading",
    "Change the signatures or the plan": "upgrading",
}


def commands_in_blocks(page: str) -> Iterator[str]:
    """Yield the `neardup` commands in the fenced blocks of a page, without prompts and comments."""
    for block in re.findall(r"^ *```(?:bash|console)\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL):
        yield from re.findall(r"^ *(?:\$ )?(neardup .*?)(?:\s+#.*)?$", block, re.MULTILINE)


IN_BLOCKS = list(dict.fromkeys(commands_in_blocks(ALL)))
IN_TEXT: list[str] = list(dict.fromkeys(re.findall(r"`(neardup [^`]+)`", ALL)))


def parsed(command: str) -> None:
    """Raise KeyError or AssertionError if there is no such command or option."""
    words = shlex.split(command)[1:]
    current: click.Command = main
    while isinstance(current, click.Group) and words:
        current = subcommand(current, words.pop(0))
    known = {option for parameter in current.params for option in parameter.opts}
    for word in words:
        assert not word.startswith("-") or word in known, f"{command}: no option {word}"


def section(page: str, title: str) -> str:
    """Return the text of the section with this title, up to the next one of its level."""
    level, text = re.split(rf"^(#+) {re.escape(title)}$", page, flags=re.MULTILINE)[1:3]
    return re.split(rf"^#{{1,{len(level)}}} ", text, flags=re.MULTILINE)[0]


def test_there_are_commands_to_check() -> None:
    assert len(IN_BLOCKS) >= 15
    assert len(IN_TEXT) > 10


@pytest.mark.parametrize("command", IN_BLOCKS + IN_TEXT)
def test_every_command_exists_with_its_options(command: str) -> None:
    parsed(command)


@pytest.mark.parametrize(("procedure", "page"), PROCEDURES.items())
def test_every_procedure_has_a_section_with_a_command_to_run(procedure: str, page: str) -> None:
    assert re.search(r"^ *```(bash|console)\n *(\$ )?(neardup|kubectl) ", section(PAGES[page], procedure), re.MULTILINE)


@pytest.mark.parametrize("wrong", ["neardup nothing", "neardup status --nothing"])
def test_a_command_that_does_not_exist_is_detected(wrong: str) -> None:
    with pytest.raises((KeyError, AssertionError)):
        parsed(wrong)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_setting_exists(page: str) -> None:
    for path in re.findall(r"\bdeploy/[\w./-]*\w", PAGES[page]):
        assert (ROOT / path).exists(), path
    known = {variable for variable, _, _ in Settings().describe()}
    assert set(re.findall(r"NEARDUP_[A-Z_]*[A-Z]", PAGES[page])) <= known


def test_every_alert_has_its_section_and_the_other_way_round() -> None:
    names = [each["alert"] for each in ALERTS]
    assert re.findall(r"^### (\w+)$", section(RUNBOOK, "Alerts"), re.MULTILINE) == names
    assert re.findall(r"^\| \[(\w+)\]\(#\w+\) \| (\w+) \|", RUNBOOK, re.MULTILINE) == [
        (each["alert"], each["labels"]["severity"]) for each in ALERTS
    ]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda each: str(each["alert"]))
def test_the_section_of_an_alert_has_symptom_meaning_and_action(alert: dict[str, str]) -> None:
    text = section(RUNBOOK, alert["alert"])
    for part in ("**Symptom.**", r"**Meaning", r"hat to do.**"):
        assert part in text, part


@pytest.mark.parametrize("alert", ALERTS, ids=lambda each: str(each["alert"]))
def test_every_alert_has_a_meaning_a_remedy_and_a_link(alert: dict[str, dict[str, str]]) -> None:
    assert alert["labels"]["severity"] in ("page", "warning")
    notes = alert["annotations"]
    assert notes.keys() == {"summary", "meaning", "action", "runbook"}
    assert notes["runbook"] == f"deploy/docs/operations/runbook.md#{str(alert['alert']).lower()}"


def test_every_reason_of_a_dead_letter_is_explained() -> None:
    of_tests = {"unwanted"}
    explained = set(re.findall(r"`([a-z-]+)`", section(RUNBOOK, "NeardupDeadLetters")))
    assert set(record_reasons()) - of_tests <= explained

"""Tests of the runbook: its commands, files, settings and alerts exist, and every alert has its section."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from neardup.errors import record_reasons
from neardup.settings import Settings
from neardup_services.cli import main
from tests.support.commands import subcommand

ROOT = Path(__file__).parents[2]
RUNBOOK = (ROOT / "deploy/RUNBOOK.md").read_text()
SECURITY = (ROOT / "deploy/SECURITY.md").read_text()
RULES = yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]
IN_BLOCKS: list[str] = re.findall(r"^ {4,}(neardup .*?)(?:\s+#.*)?$", RUNBOOK, re.MULTILINE)
IN_TEXT: list[str] = re.findall(r"`(neardup [^`]+)`", RUNBOOK + SECURITY)
PROCEDURES = ("Scale out", "Size a deployment", "Restore from nothing", "Change the signatures", "Reshard")


def parsed(command: str) -> None:
    """Parse the command. Raises if there is no such command or option."""
    words = shlex.split(command)[1:]
    current: click.Command = main
    while isinstance(current, click.Group) and words:
        current = subcommand(current, words.pop(0))
    known = {option for parameter in current.params for option in parameter.opts}
    for word in words:
        assert not word.startswith("-") or word in known, f"{command}: no option {word}"


@pytest.mark.parametrize("command", IN_BLOCKS + IN_TEXT)
def test_every_command_exists_with_its_options(command: str) -> None:
    parsed(command)


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_every_procedure_has_a_section_with_a_command_to_run(procedure: str) -> None:
    section = RUNBOOK.split(f"\n## {procedure}\n")[1].split("\n## ")[0]
    assert re.search(r"(^ {4,}|`)(neardup|kubectl) ", section, re.MULTILINE)


@pytest.mark.parametrize("wrong", ["neardup nothing", "neardup status --nothing"])
def test_a_command_that_does_not_exist_is_detected(wrong: str) -> None:
    with pytest.raises((KeyError, AssertionError)):
        parsed(wrong)


def test_every_file_and_setting_exists() -> None:
    for path in re.findall(r"\bdeploy/[\w./-]*\w", RUNBOOK + SECURITY.replace("*.txt", "dev.txt")):
        assert (ROOT / path).exists(), path
    known = {variable for variable, _, _ in Settings().describe()}
    assert set(re.findall(r"NEARDUP_[A-Z_]*[A-Z]", RUNBOOK + SECURITY)) <= known


def test_alerts_and_their_sections_correspond() -> None:
    section = RUNBOOK.split("## What each alert asks of you")[1].split("\n## ")[0]
    assert re.findall(r"^### (\w+)$", section, re.MULTILINE) == [each["alert"] for each in ALERTS]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda each: str(each["alert"]))
def test_every_alert_has_a_meaning_a_remedy_and_a_link(alert: dict[str, dict[str, str]]) -> None:
    assert alert["labels"]["severity"] in ("page", "warning")
    notes = alert["annotations"]
    assert notes.keys() == {"summary", "meaning", "action", "runbook"}
    assert notes["runbook"] == f"deploy/RUNBOOK.md#{str(alert['alert']).lower()}"


def test_every_reason_of_a_dead_letter_is_explained() -> None:
    of_tests = {"unwanted"}
    explained = set(re.findall(r"`([a-z-]+)`", RUNBOOK.split("### NeardupDeadLetters")[1].split("\n### ")[0]))
    assert set(record_reasons()) - of_tests <= explained

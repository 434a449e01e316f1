"""README and reference cannot rot: what they name exists, and what exists is named."""

import re
import subprocess
import sys
from pathlib import Path

import click
import prometheus_client
import pytest

from neardup import metrics
from neardup.settings import FILE_VARIABLE, Settings
from neardup_services.cli import main
from tests.support.commands import all_commands

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "deploy" / "docs" / "REFERENCE.md").read_text()
TOLD = {path: path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "deploy").rglob("*.md")))}
# Examples of a misspelt variable, of a prefix and of a variable that Kubernetes sets.
NO_SETTINGS = {"NEARDUP_HAMMNG", "NEARDUP_TEST", "NEARDUP_TEST_KAFKA_VERSION", "NEARDUP_SERVICE_HOST"}


def metric_names() -> set[str]:
    kinds = (prometheus_client.Counter, prometheus_client.Gauge, prometheus_client.Histogram)
    found = set()
    for each in vars(metrics).values():
        if isinstance(each, kinds):
            (family,) = each.collect()
            found.add(family.name + ("_total" if family.type == "counter" else ""))
    return found


def test_every_setting_is_in_the_reference_with_its_default_and_meaning() -> None:
    for variable, value, about in Settings().describe():
        default = f"`{value}`" if value else ""
        assert f"| `{variable}` | {default} | {about} |" in REFERENCE


@pytest.mark.parametrize("path", TOLD, ids=lambda path: path.name)
def test_every_variable_that_is_named_exists(path: Path) -> None:
    known = {variable for variable, _, _ in Settings().describe()} | {FILE_VARIABLE} | NO_SETTINGS
    assert set(re.findall(r"NEARDUP_[A-Z_]*[A-Z]", TOLD[path])) <= known


def test_every_metric_is_in_the_reference_and_the_other_way_round() -> None:
    documented = set(re.findall(r"^\| `(neardup_\w+)` \|", REFERENCE, re.MULTILINE))
    assert documented == metric_names()


def test_every_command_is_in_the_readme_and_has_help() -> None:
    for path, command in all_commands(main, "neardup"):
        assert f"`{path}" in README, path
        assert command.help, path
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, f"{path} {parameter.name}"


@pytest.mark.parametrize("path", TOLD, ids=lambda path: path.name)
def test_every_command_that_is_named_exists(path: Path) -> None:
    known = {path for path, _ in all_commands(main, "neardup")}
    for found in re.findall(r"`(neardup [a-z][a-z -]*[a-z])", TOLD[path]):
        assert any(found == each or found.startswith(each + " ") for each in known), found


@pytest.mark.parametrize("target", ["demo", "test", "faults", "soak", "lint", "bench", "up", "down", "broker", "lock"])
def test_every_make_target_is_in_the_readme_and_in_make_help(target: str) -> None:
    assert f"make {target}" in README
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert re.search(rf"^#   make {target} ", makefile, re.MULTILINE)


@pytest.mark.parametrize("path", TOLD, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", TOLD[path]):
        assert (path.parent / link).exists(), link
    for anchor in re.findall(r"\]\(#([^)]+)\)", TOLD[path]):
        heads = re.findall(r"^#+ (.+)$", TOLD[path], re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}, anchor


def test_every_path_in_the_code_map_exists() -> None:
    section = README.split("### Code map")[1].split("###")[0]
    for path in re.findall(r"`((?:shared|services|deploy|tests)/[\w./]+)`", section):
        assert (ROOT / path).exists(), path


def test_the_demo_prints_what_the_readme_shows(tmp_path: Path) -> None:
    shown = README.split("$ make demo\n")[1].split("\n\n")[0]
    lines = [line.strip() for line in shown.splitlines()]
    commands = [line for line in lines if line.startswith("neardup ")]
    makefile = (ROOT / "Makefile").read_text().replace("$(BIN)/", "").replace("$(DEMO)", ".run/demo")
    (tmp_path / ".run" / "demo").mkdir(parents=True)
    printed = ""
    for command in commands:
        assert f"\t{command}\n" in makefile
        arguments = [sys.executable, "-m", "neardup_services.cli", *command.split()[1:]]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path)
        printed += done.stdout
    for line in lines:
        # Which of several earlier pages a duplicate is told about depends on the moment, and with it the relation.
        if line not in commands and line != "..." and not line.startswith("duplicates:"):
            assert line in printed


def test_the_version_is_in_the_changelog() -> None:
    import neardup

    assert f"## {neardup.__version__}" in (ROOT / "CHANGELOG.md").read_text()

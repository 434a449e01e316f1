"""The help and the completion of the command line, which do not import the commands."""

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from neardup_services.cli import SECTIONS, main
from neardup_services.lazy_group import LazyGroup
from tests.support.commands import all_commands, subcommand

COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_help(name: str) -> None:
    command = subcommand(main, name)
    assert command.name == name
    assert COMMANDS[name].summary.rstrip(".") == command.get_short_help_str(200).rstrip(".")


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(path, command, id=path) for path, command in all_commands(main, "neardup")]
)
def test_the_help_of_every_command_has_an_example(path: str, command: click.Command) -> None:
    done = CliRunner().invoke(main, [*path.split()[1:], "--help"])
    assert done.exit_code == 0
    assert f"{path} " in done.output.split("Example:")[1].split("Options:")[0].replace("\n", " ")


def test_the_help_lists_every_command_on_one_line() -> None:
    lines = CliRunner().invoke(main, ["--help"], terminal_width=80).output.splitlines()
    for name, command in COMMANDS.items():
        assert f"  {name:<12}  {command.summary}" in lines
    positions = [lines.index(f"{heading}:") for heading in SECTIONS]
    assert positions == sorted(positions)


def test_an_unknown_command_is_an_error() -> None:
    done = CliRunner().invoke(main, ["dedpu"])
    assert done.exit_code == 2
    assert "No such command 'dedpu'" in done.output


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ([], "de", ["dedup", "dead-letters"]),
        ([], "ex", ["explain", "expire"]),
        ([], "--v", ["--version"]),
        (["dedup"], "--st", ["--state"]),
        (["dead-letters"], "r", ["replay"]),
        (["worker"], "f", ["featurizer"]),
    ],
)
def test_commands_options_and_arguments_are_completed(words: list[str], incomplete: str, expected: list[str]) -> None:
    found = BashComplete(main, {}, "neardup", "_NEARDUP_COMPLETE").get_completions(words, incomplete)
    names = [each.value for each in found if each.value.startswith(incomplete)]
    assert set(names) >= set(expected)


def test_a_completed_command_comes_with_its_summary() -> None:
    assert isinstance(main, LazyGroup)
    found = main.shell_complete(click.Context(main), "dedu")
    assert [(each.value, each.help) for each in found] == [("dedup", COMMANDS["dedup"].summary)]

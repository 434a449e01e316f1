"""A command group that imports the module of a command when the command is used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final, NamedTuple

import click
from click.shell_completion import CompletionItem


class LazyCommand(NamedTuple):
    """A command that is not imported yet: its module, its attribute, and its summary in the help of the group."""

    module: str
    attribute: str
    summary: str


Sections = Mapping[str, Mapping[str, LazyCommand]]
"""Headings of the help, each with its commands by name."""


class LazyGroup(click.Group):
    """A group whose help and completion use `sections` and import no module of a command."""

    sections: Final[Sections]

    def __init__(self, *, sections: Sections, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.sections = sections
        self._lazy = {name: command for section in sections.values() for name, command in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None if there is none of this name."""
        if cmd_name not in self._lazy:
            return None
        module, attribute, _ = self._lazy[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list of commands per section."""
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                # All sections use the same column width, so that the summaries line up.
                width = max(map(len, self._lazy))
                formatter.write_dl([(name.ljust(width), command.summary) for name, command in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin with `incomplete`."""
        found = [
            CompletionItem(name, help=command.summary)
            for name, command in self._lazy.items()
            if name.startswith(incomplete)
        ]
        # The method of click.Group would import every command for its help.
        return found + click.Command.shell_complete(self, ctx, incomplete)

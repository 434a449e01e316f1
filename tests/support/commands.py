"""Commands of the command line, by name."""

from collections.abc import Iterator

import click


def subcommand(group: click.Group, name: str) -> click.Command:
    """Return a command of a group. Raises KeyError if the group has no command with this name."""
    command = group.get_command(click.Context(group), name)
    if command is None:
        raise KeyError(name)
    return command


def all_commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a group, except groups, with the words that call it."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from all_commands(subcommand(command, name), f"{path} {name}")
    else:
        yield path, command

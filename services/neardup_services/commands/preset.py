"""The option of commands that take a named set of settings."""

import click

from neardup.presets import DEFAULT, PRESETS

preset_option = click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    default=DEFAULT,
    show_default=True,
    help="A named set of settings; variables and the settings file win over it.",
)

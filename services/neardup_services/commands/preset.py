"""The option of commands that take a named set of settings."""

import click

from neardup.settings import DEFAULT_PRESET, PRESETS

preset_option = click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    default=DEFAULT_PRESET,
    show_default=True,
    help="A named set of settings; variables and the settings file win over it.",
)

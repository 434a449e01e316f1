"""`neardup settings`: lists every setting with its current value."""

import click

from neardup.errors import SettingsError
from neardup.settings import Settings, unknown_variables
from neardup_services.commands._shared import make_table, output_console


@click.command()
def settings() -> None:
    """List every setting with its value and meaning. Secrets are masked.

    Unknown NEARDUP_* variables of the environment come last.

    Exit code 1: one of them is a misspelt setting, with which every other command refuses to start.

    \b
    Example:
      NEARDUP_HAMMING=4 neardup settings
    """
    listed = make_table("variable", "value", "meaning", left=3)
    for variable, value, about in Settings.load(allow_unknown=True).describe():
        listed.add_row(variable, value, about)
    unknown = unknown_variables()
    for each in unknown:
        # The value is left out: it may be a password under a misspelt name.
        listed.add_row(each.name, "(unknown)", f"not a setting; the closest one is {each.closest}")
    output_console().print(listed)
    if misspelt := [each for each in unknown if each.misspelt]:
        raise SettingsError("\n       ".join(map(str, misspelt)))

"""The command line: `neardup COMMAND`. Every command has help; errors are one line and exit code 1."""

import asyncio
import sys
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import neardup
from neardup.deployment.deployment import SERVICES
from neardup.deployment.topics import topic_specs
from neardup.errors import NeardupError, SettingsError
from neardup.log.kafka import KafkaLog
from neardup.messages.topics import Topics
from neardup.runtime.process_tuning import tune_process
from neardup.settings import Settings, unknown_variables
from neardup_services.commands.changes import changes
from neardup_services.commands.dead_letters import dead_letters
from neardup_services.commands.dedup import dedup
from neardup_services.commands.distribution import distribution
from neardup_services.commands.evaluate import evaluate
from neardup_services.commands.explain import explain
from neardup_services.commands.fingerprint import fingerprint
from neardup_services.commands.forget import expire, forget
from neardup_services.commands.lookup import lookup
from neardup_services.commands.moved import moved
from neardup_services.commands.plan import plan
from neardup_services.commands.produce import produce
from neardup_services.commands.recluster import recluster
from neardup_services.commands.replay import replay
from neardup_services.commands.reshard import reshard
from neardup_services.commands.sample import sample
from neardup_services.commands.score import score
from neardup_services.commands.serve import serve
from neardup_services.commands.similar import similar
from neardup_services.commands.status import status
from neardup_services.commands.tune import tune
from neardup_services.commands.verdicts import verdicts
from neardup_services.commands.warm_up import warm_up


class _Group(click.Group):
    """Turns our errors into one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NeardupError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(neardup.__version__, prog_name="neardup")
def main() -> None:
    """Tell a web crawler whether a page is new, a copy, a near-duplicate or contained in an earlier one.

    Everything is configured by NEARDUP_* variables; `neardup settings` lists them.
    """


@main.command()
@click.argument("name", type=click.Choice(sorted(SERVICES)))
def worker(name: str) -> None:
    """Run one worker of the service NAME until Ctrl-C or SIGTERM.

    Start as many as you like: they share the partitions. Give each its own NEARDUP_STATE and NEARDUP_WEB_PORT.
    """
    import faust  # slow to import, and only needed here
    import uvloop

    from neardup_services.worker.faust_app import make_app
    from neardup_services.worker.logs import logging_config

    settings = Settings.load()
    # Faust runs on the loop of the thread.
    asyncio.set_event_loop(uvloop.new_event_loop())
    app = make_app(name, settings)
    running = faust.Worker(
        app, quiet=True, loglevel=settings.log_level, logging_config=logging_config(settings), redirect_stdouts=False
    )
    tune_process()
    running.execute_from_commandline()


@main.group()
def topics() -> None:
    """Kafka topics."""


@topics.command()
def create() -> None:
    """Create the topics that are missing; say how existing ones differ.

    Safe to repeat. Changes nothing that exists; exit code 1 if something differs. Of a deployment that was resharded,
    `neardup reshard` made those between services.
    """
    said = asyncio.run(_create(Settings.load()))
    for name, state in said.items():
        click.echo(f"{name}: {state}")
    if any(state not in ("created", "exists") for state in said.values()):
        sys.exit(1)


async def _create(settings: Settings) -> dict[str, str]:
    names, specs = Topics.under(settings.prefix, settings.generation), topic_specs(settings)
    if settings.generation:
        # Made here they would be empty: what the deployment knows is in the ones that the resharding made.
        specs = [spec for spec in specs if spec.name not in (names.probes, names.inbox)]
    return await KafkaLog(settings).create_topics(specs)


@main.command()
def settings() -> None:
    """List every setting with its value and meaning. Secrets are masked.

    Unknown NEARDUP_* variables of the environment come last. Exit code 1 if one of them is a misspelt setting: every
    other command refuses to start then.
    """
    table = Table("variable", "value", "meaning", box=None, pad_edge=False)
    for variable, value, about in Settings.load(allow_unknown=True).describe():
        table.add_row(variable, value, about)
    unknown = unknown_variables()
    for each in unknown:
        # The value is left out: it may be a password under a misspelt name.
        table.add_row(each.name, "(unknown)", f"no setting; the closest one is {each.closest}")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    if misspelt := [each for each in unknown if each.misspelt]:
        raise SettingsError("\n       ".join(map(str, misspelt)))


for command in (
    dedup, produce, verdicts, status, dead_letters, forget, expire, reshard, recluster, lookup, similar, moved, changes,
    serve, sample, score, evaluate, tune, distribution, replay, fingerprint, explain, plan, warm_up,
):  # fmt: skip
    main.add_command(command)


if __name__ == "__main__":
    main()

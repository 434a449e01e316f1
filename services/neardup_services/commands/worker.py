"""`neardup worker`: runs a worker of a service."""

import asyncio

import click

from neardup.deployment.deployment import SERVICES
from neardup.runtime.process_tuning import tune_process
from neardup.settings import Settings


@click.command()
@click.argument("name", type=click.Choice(sorted(SERVICES)))
def worker(name: str) -> None:
    """Run one worker of a service.

    The worker of the service NAME runs until Ctrl-C or SIGTERM. The workers of a service share its partitions. On one
    machine, each worker needs its own NEARDUP_STATE and NEARDUP_WEB_PORT.

    \b
    Example:
      NEARDUP_STATE=state/shard-1 NEARDUP_WEB_PORT=6067 neardup worker shard
    """
    import faust  # slow to import, and not needed for the help
    import uvloop

    from neardup_services.worker.faust_app import make_app
    from neardup_services.worker.logs import logging_config

    settings = Settings.load()
    # Faust uses the event loop that is set for this thread.
    asyncio.set_event_loop(uvloop.new_event_loop())
    app = make_app(name, settings)
    running = faust.Worker(
        app, quiet=True, loglevel=settings.log_level, logging_config=logging_config(settings), redirect_stdouts=False
    )
    tune_process()
    running.execute_from_commandline()

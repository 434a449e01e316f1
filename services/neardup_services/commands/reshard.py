"""`neardup reshard`: changes the number of slices or owners of a deployment or of a state directory."""

import asyncio
import tempfile
from pathlib import Path

import click

from neardup.log.kafka import KafkaLog, KafkaPartitions
from neardup.resharding.cluster import ClusterResharding
from neardup.resharding.resharding import Resharding
from neardup.resharding.state_directory import plan_resharding, reshard_state
from neardup.settings import Settings


@click.command()
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="Reshard the state of `neardup dedup` in this directory, without a broker.",
)
@click.option("--slice-bits", type=click.IntRange(0, 16), help="New value of NEARDUP_SLICE_BITS.")
@click.option("--band-slice-bits", type=click.IntRange(0, 16), help="New value of NEARDUP_BAND_SLICE_BITS.")
@click.option("--owners", type=click.IntRange(1, 10_000), help="New value of NEARDUP_OWNERS. Not allowed with --state.")
@click.option(
    "--scratch",
    type=click.Path(path_type=Path),
    help="Directory for temporary files, with enough space for the whole state. Default: the system's.",
)
@click.option("--dry-run", is_flag=True, help="Check the deployment and print the changes without making them.")
def reshard(
    state: Path | None,
    slice_bits: int | None,
    band_slice_bits: int | None,
    owners: int | None,
    scratch: Path | None,
    dry_run: bool,
) -> None:
    """Change the number of slices or of owners.

    Without options the number of slices of every table doubles. Resharding does not affect the verdicts on later pages.

    The current settings must be those of the deployment; at the end the command prints the settings to change. Stop the
    featurizers first, then the shards and aggregators once these have no lag; pages may wait. The state is read from
    the log and written to new topics; verdicts are not emitted again. After a crash, run the command again.

    \b
    Example:
      neardup reshard --owners 16 --dry-run
    """
    settings = Settings.load()
    if state is not None:
        if owners is not None:
            raise click.UsageError(
                "expected --owners only for a deployment on Kafka, got --state: a state directory has one owner"
            )
        resharding = plan_resharding(state, settings, slice_bits=slice_bits, band_slice_bits=band_slice_bits)
        click.echo(_about(resharding))
        if not dry_run:
            reshard_state(state, resharding, on_step=click.echo)
    else:
        resharding = Resharding.of(settings, slice_bits=slice_bits, band_slice_bits=band_slice_bits, owners=owners)
        click.echo(_about(resharding))
        if scratch is not None:
            scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="neardup-reshard-", dir=scratch) as directory:
            asyncio.run(_on_cluster(resharding, Path(directory), dry_run))
    click.echo("settings to change after resharding:" if dry_run else "done; change these settings now:")
    for variable, before, after in resharding.changes():
        # A state directory records its generation itself.
        if not (state is not None and variable == "NEARDUP_GENERATION"):
            click.echo(f"  {variable}={after}  (was {before})")


async def _on_cluster(resharding: Resharding, scratch: Path, dry_run: bool) -> None:
    settings = resharding.old.settings
    async with KafkaLog(settings) as log, KafkaPartitions(settings) as partitions:
        work = ClusterResharding(resharding, log, partitions, scratch, on_step=click.echo)
        if dry_run:
            await work.check()
        else:
            await work.run()


def _about(resharding: Resharding) -> str:
    old, new = resharding.old, resharding.new
    return (
        f"{old.plan.partitions} shard partitions and {old.settings.owners} owners become {new.plan.partitions} and "
        f"{new.settings.owners}, in {new.topics.probes} and {new.topics.inbox}"
    )

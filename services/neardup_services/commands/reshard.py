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
@click.option("--owners", type=click.IntRange(1, 10_000), help="New value of NEARDUP_OWNERS; not with --state.")
@click.option(
    "--scratch",
    type=click.Path(path_type=Path),
    help="Directory with room for the whole state. Default: a temporary directory.",
)
@click.option("--dry-run", is_flag=True, help="Check, and print the changes without making them.")
def reshard(
    state: Path | None,
    slice_bits: int | None,
    band_slice_bits: int | None,
    owners: int | None,
    scratch: Path | None,
    dry_run: bool,
) -> None:
    """Change the number of slices or of owners.

    Without options every table gets twice as many slices. The pages that follow get the same verdicts as before.

    The current settings must be those of the deployment; at the end the command prints the settings to change. Stop
    featurizers, shards and aggregators first, with no lag except that of the featurizers: pages may wait. The state is
    read from the log and written to new topics; verdicts are not emitted again. After a crash, run the command again.

    \b
    Example:
      neardup reshard --owners 16 --dry-run
    """
    settings = Settings.load()
    if state is not None:
        if owners is not None:
            raise click.UsageError("a state directory has one owner: --owners is for a deployment on Kafka")
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
    click.echo("would have to be set from then on:" if dry_run else "done; from now on set:")
    for variable, before, after in resharding.changes():
        # A state directory keeps its generation itself.
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

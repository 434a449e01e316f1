"""`neardup distribution`: shows how the fingerprints of pages are distributed."""

import json
from pathlib import Path
from typing import Final

import click
import numpy as np
from rich.table import Table

from neardup.evaluation.distribution import BUCKET_BITS, Distribution, DistributionCounter
from neardup.evaluation.distribution_plots import plots
from neardup.index.batch.fingerprint_file import is_fingerprint_file, read_fingerprints
from neardup.inputs import open_input
from neardup.inputs.folder import DEFAULT_PREFIX
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup_services.commands._shared import make_progress, make_table, output_console

_LEAST_SHOWN: Final = 0.005
"""Minimum share of the neighbours for a row of the table."""


@click.command()
@click.argument("inputs", nargs=-1, required=True)
@click.option("--url-prefix", default=DEFAULT_PREFIX, show_default=True, help="Prefix of the urls of pages in folders.")
@click.option(
    "--spikes", default=10, show_default=True, type=click.IntRange(0), help="Maximum number of spikes to list."
)
@click.option("--plot", type=click.Path(file_okay=False, path_type=Path), help="Directory for charts in SVG.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with all counts.")
def distribution(inputs: tuple[str, ...], url_prefix: str, spikes: int, plot: Path | None, as_json: bool) -> None:
    """Show how the fingerprints of pages are distributed.

    INPUTS are of the same kinds as for `neardup dedup`, or fingerprint files. Neighbours in sorted order and buckets
    show where fingerprints cluster; spikes are fingerprints of many pages. The distribution of simhash weights and the
    names of spikes need pages: fingerprint files do not contain them.

    \b
    Example:
      neardup distribution pages.jsonl --plot charts
    """
    collected, unusable = _collect(inputs, url_prefix)
    found = collected.distribution(spikes=spikes)
    if plot is not None:
        plot.mkdir(parents=True, exist_ok=True)
        for name, drawn in plots(found).items():
            (plot / name).write_text(drawn)
    if as_json:
        click.echo(json.dumps(found.as_dict() | {"unusable": unusable}))
    else:
        _print(found, unusable)


def _collect(inputs: tuple[str, ...], url_prefix: str) -> tuple[DistributionCounter, int]:
    signatures = Signatures(SignatureOptions.of(Settings.load()), everything=False)
    collected, unusable = DistributionCounter(), 0
    with make_progress() as progress:
        for name in inputs:
            if is_fingerprint_file(Path(name)):
                for chunk in read_fingerprints(Path(name)):
                    collected.add_fingerprints(chunk)
                continue
            source = open_input(name, url_prefix=url_prefix)
            task = progress.add_task(name, total=source.bytes_total)
            for item in source.items():
                if item.page is None:
                    unusable += 1
                else:
                    collected.add_page(item.page, signatures)
                progress.update(task, completed=source.bytes_read)
    return collected, unusable


def _print(found: Distribution, unusable: int) -> None:
    console = output_console()
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in found.skipped.items())
    console.print(
        f"{found.pages:,} pages, {found.distinct:,} distinct fingerprints; "
        f"skipped: {skipped or 'none'}; {unusable:,} items could not be used"
    )
    if found.distinct:
        mean = found.buckets.mean()
        console.print(
            f"{1 << BUCKET_BITS} buckets: {mean:,.1f} pages on average, {found.buckets.min():,} to "
            f"{found.buckets.max():,}; the "
            f"standard deviation is {found.buckets.std():.1f}, for random fingerprints it would be {np.sqrt(mean):.1f}"
        )
    console.print(_leading(found))
    if found.spikes:
        table = make_table("fingerprint", "pages", "what", "for example", left=4)
        for spike in found.spikes:
            table.add_row(f"{spike.fingerprint:016x}", f"{spike.pages:,}", spike.name or "", spike.url)
        console.print(table)


def _leading(found: Distribution) -> Table:
    table = make_table("leading 1 of neighbours' XOR", "share", "if random", left=0)
    for position, share, random in found.shares():
        if max(share, random) >= _LEAST_SHOWN:
            table.add_row(f"{position}", f"{share:.3f}", f"{random:.3f}")
    return table

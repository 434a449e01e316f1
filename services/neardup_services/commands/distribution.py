"""`neardup distribution INPUT...`: how the fingerprints of pages are spread, and what crowds."""

import json
import sys
from pathlib import Path
from typing import Final

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from neardup.evaluation.distribution import BUCKET_BITS, Distribution, DistributionCounter
from neardup.evaluation.distribution_plots import plots
from neardup.index.batch.fingerprint_file import is_fingerprint_file, read_fingerprints
from neardup.inputs import open_input
from neardup.inputs.folder import DEFAULT_PREFIX
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures

_LEAST_SHOWN: Final = 0.005
"""A position with a smaller share of the neighbours is left out of the table."""


@click.command()
@click.argument("inputs", nargs=-1, required=True)
@click.option("--url-prefix", default=DEFAULT_PREFIX, show_default=True, help="Of the urls of pages from folders.")
@click.option("--spikes", default=10, show_default=True, type=click.IntRange(0), help="How many to name.")
@click.option("--plot", type=click.Path(file_okay=False, path_type=Path), help="Directory for charts, as SVG.")
@click.option("--json", "as_json", is_flag=True, help="One object, with all counts.")
def distribution(inputs: tuple[str, ...], url_prefix: str, spikes: int, plot: Path | None, as_json: bool) -> None:
    """Tell how the fingerprints of the pages of INPUTS are spread: input as for `neardup dedup`, or fingerprint files.

    Neighbours in sorted order and buckets show where pages crowd; spikes are fingerprints that many pages have. From
    pages, not from fingerprint files, there are also the distribution of simhash weights and the names of spikes.
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
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
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
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in found.skipped.items())
    console.print(
        f"{found.pages:,} pages, {found.distinct:,} different fingerprints; "
        f"skipped: {skipped or 'none'}; {unusable:,} items not usable"
    )
    if found.distinct:
        mean = found.buckets.mean()
        console.print(
            f"{1 << BUCKET_BITS} buckets: {mean:,.1f} pages on average, {found.buckets.min():,} to "
            f"{found.buckets.max():,}; random ones would spread by {np.sqrt(mean):.1f}, these do by "
            f"{found.buckets.std():.1f}"
        )
    console.print(_leading(found))
    if found.spikes:
        table = Table("fingerprint", "pages", "what", "for example", box=None, pad_edge=False)
        for spike in found.spikes:
            table.add_row(f"{spike.fingerprint:016x}", f"{spike.pages:,}", spike.name or "", spike.url)
        console.print(table)


def _leading(found: Distribution) -> Table:
    table = Table(box=None, pad_edge=False)
    for head in ("leading 1 of neighbours' XOR", "share", "if random"):
        table.add_column(head, justify="right")
    for position, share, random in found.shares():
        if max(share, random) >= _LEAST_SHOWN:
            table.add_row(f"{position}", f"{share:.3f}", f"{random:.3f}")
    return table

"""`neardup evaluate`: measures precision and recall on labelled pairs, of the verdicts and of each method alone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from neardup.evaluation.confusion import Figure, Quality
from neardup.evaluation.pairs import read_pairs
from neardup.evaluation.plots import plots
from neardup.evaluation.preset_costs import PresetCost, preset_costs
from neardup.evaluation.psm_recall import PsmRecall, psm_recall
from neardup.evaluation.report import Evaluation, MethodQuality
from neardup.evaluation.report import evaluate as evaluate_pairs
from neardup.evaluation.strata import BY_FILE
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup_services.commands._shared import make_table, output_console, preset_option

MOST_K: Final = 7
"""Largest k of --psm. The kernels count at most this many differing bits."""
_HEADS: Final = ("", "threshold", "pairs", "precision", "recall", "F1")


@click.command()
@click.argument(
    "pairs", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="PAIRS..."
)
@preset_option
@click.option(
    "--seed", default=0, show_default=True, help="Seed for the folds of cross-validation and for the bootstrap."
)
@click.option("--plot", type=click.Path(file_okay=False, path_type=Path), help="Directory for charts in SVG.")
@click.option("--curves", is_flag=True, help="Also print every method at every threshold.")
@click.option(
    "--table",
    "as_table",
    is_flag=True,
    help="Print only the F1 of every method, on all pairs and on the pairs of each file.",
)
@click.option(
    "--presets",
    is_flag=True,
    help="Print only the costs and the quality of every preset, on PAIRS and on a sample crawl.",
)
@click.option(
    "--crawl-pages",
    default=5000,
    show_default=True,
    type=click.IntRange(1000),
    help="Number of pages of the sample crawl.",
)
@click.option("--psm", is_flag=True, help="Print only the recall of the probabilistic search against the exact one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with all figures and curves.")
def evaluate(
    pairs: tuple[Path, ...],
    preset: str,
    seed: int,
    plot: Path | None,
    curves: bool,
    as_table: bool,
    presets: bool,
    crawl_pages: int,
    psm: bool,
    as_json: bool,
) -> None:
    """Measure precision and recall on labelled pairs.

    PAIRS are files of JSON lines with label, a and b, where a and b are pages as text or HTML; they may be compressed
    (.gz). Intervals have a confidence of 95%, by bootstrap. The threshold of a single method is found by
    cross-validation: it is chosen on one part of the pairs and measured on the other.

    \b
    Example:
      neardup evaluate pairs.jsonl --plot charts
    """
    if as_table + presets + psm > 1:
        raise click.UsageError("expected at most one of --table, --presets and --psm, got several")
    console = output_console()
    known, settings = read_pairs(pairs), Settings.load(preset=preset)
    if presets:
        costs = preset_costs(known, list(sample_crawl(crawl_pages)), seed=seed)
        _show(console, [each.as_dict() for each in costs], _presets_table(costs), as_json)
        return
    if psm:
        recalls = psm_recall(known, settings, range(settings.hamming, MOST_K + 1), seed=seed)
        _show(console, [each.as_dict() for each in recalls], _psm_table(recalls), as_json)
        return
    found = evaluate_pairs(known, settings, seed=seed)
    if plot is not None:
        plot.mkdir(parents=True, exist_ok=True)
        for name, drawn in plots(found).items():
            (plot / name).write_text(drawn)
    if as_json:
        click.echo(json.dumps(found.as_dict()))
        return
    if as_table:
        console.print(_methods_table(found))
        return
    _print(console, found)
    if curves:
        for each in found.alone:
            console.print(_curve(each))


def _show(console: Console, body: list[dict[str, object]], table: Table, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(body))
    else:
        console.print(table)


def _print(console: Console, found: Evaluation) -> None:
    cost = found.cost
    console.print(f"{found.pairs} pairs, {found.duplicates} near-duplicates; {found.groups} groups share no page")
    console.print(
        f"cost: {cost.probes} probes per page ({cost.tables} tables, {cost.bands} bands), "
        f"{cost.bytes_per_page:.0f} bytes per page"
    )
    console.print(
        f"missed: {found.not_found} near-duplicates that no table finds, {found.refused} that the rule rejects"
    )
    table = make_table(*_HEADS, left=2)
    for each in (found.verdict, found.rule, found.candidates):
        _add(table, each.name, "as set", each.total)
    for part in found.verdict.strata:
        _add(table, f"verdict, {part}", "as set", found.verdict.strata[part])
    for alone in found.alone:
        if alone.judged is not None and alone.chosen is not None:
            _add(table, alone.name, _chosen(alone.threshold, *alone.chosen), alone.judged.total)
            for part, quality in alone.judged.strata.items():
                if part.startswith(BY_FILE):
                    _add(table, f"  {part}", "", quality)
    console.print(table)
    if any(alone.judged is None for alone in found.alone):
        console.print("methods alone: too few pairs for cross-validation; --curves shows them at every threshold")


def _add(table: Table, name: str, threshold: str, each: Quality) -> None:
    table.add_row(name, threshold, str(each.pairs), _shown(each.precision), _shown(each.recall), _shown(each.f1))


def _chosen(name: str, least: float, middle: float, most: float) -> str:
    return f"{name} {middle:g}" + ("" if least == most else f" ({least:g} to {most:g})")


def _shown(figure: Figure) -> str:
    if figure.value != figure.value:
        return "-"
    return f"{figure.value:.3f} ({figure.low:.2f} to {figure.high:.2f})"


def _curve(alone: MethodQuality) -> Table:
    table = make_table(alone.threshold, "precision", "recall", "F1", left=0, title=alone.name)
    for point in alone.curve:
        figures = (point.precision, point.recall, point.f1)
        table.add_row(f"{point.threshold:g}", *("-" if each != each else f"{each:.3f}" for each in figures))
    return table


def _methods_table(found: Evaluation) -> Table:
    """Return F1 of every method with a threshold by cross-validation, on all pairs and on those of each file."""
    judged = [(alone.name, alone.judged) for alone in found.alone if alone.judged is not None]
    files = [part for part in found.verdict.strata if part.startswith(BY_FILE)]
    table = make_table("F1", "all", *(part.removeprefix(BY_FILE) for part in files))
    for name, each in (("verdict, as set", found.verdict), *judged):
        own = [each.strata[part].f1.value for part in files]
        interval = f"{each.total.f1.value:.3f} ({each.total.f1.low:.2f} to {each.total.f1.high:.2f})"
        table.add_row(name, interval, *(f"{value:.3f}" for value in own))
    return table


def _presets_table(costs: Sequence[PresetCost]) -> Table:
    """Return one row per preset."""
    table = make_table(
        "preset", "probes", "bytes/page", "pages/s", "precision", "recall", "F1", "crawl precision", "crawl recall"
    )
    for each in costs:
        pairs = (each.pairs.precision, each.pairs.recall, each.pairs.f1)
        table.add_row(
            each.preset,
            f"{each.probes}",
            f"{each.bytes_per_page:.0f}",
            f"{each.pages_per_s:,.0f}",
            *(f"{figure.value:.3f}" for figure in pairs),
            *("-" if share is None else f"{share:.4f}" for share in (each.crawl_precision, each.crawl_recall)),
        )
    return table


def _psm_table(recalls: Sequence[PsmRecall]) -> Table:
    """Return one row per k."""
    head = recalls[0]
    flips = f"recall of {head.flips} flips"
    table = make_table("k", "pairs", f"{flips}, fitted", f"{flips}, simulated", "flips for .95, fitted", "simulated")
    for each in recalls:
        shares = (f"{each.fitted:.3f}", f"{each.simulated:.3f}")
        table.add_row(f"{each.k}", f"{each.pairs}", *shares, f"{each.fitted_flips}", f"{each.simulated_flips}")
    return table

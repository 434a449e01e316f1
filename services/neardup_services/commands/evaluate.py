"""`neardup evaluate PAIRS...`: how good the verdicts are on labelled pairs, and each method alone."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from neardup.evaluation.confusion import Figure, Quality
from neardup.evaluation.pairs import read_pairs
from neardup.evaluation.plots import plots
from neardup.evaluation.preset_costs import preset_costs
from neardup.evaluation.psm_recall import psm_recall
from neardup.evaluation.report import Evaluation, MethodQuality
from neardup.evaluation.report import evaluate as evaluate_pairs
from neardup.evaluation.strata import BY_FILE
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup_services.commands.evaluation_tables import methods_table, presets_table, psm_table
from neardup_services.commands.preset import preset_option

MOST_K: Final = 7
"""Up to which --psm looks: a kernel counts at most so many differing bits."""
_HEADS: Final = ("", "threshold", "pairs", "precision", "recall", "F1")


@click.command()
@click.argument(
    "pairs", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="PAIRS..."
)
@preset_option
@click.option("--seed", default=0, show_default=True, help="Of folds and resamples.")
@click.option("--plot", type=click.Path(file_okay=False, path_type=Path), help="Directory for charts, as SVG.")
@click.option("--curves", is_flag=True, help="Every method at every threshold, too.")
@click.option("--table", "as_table", is_flag=True, help="Instead: F1 of every method, on all pairs and on each file.")
@click.option("--presets", is_flag=True, help="Instead: what every preset costs and finds, here and in a sample crawl.")
@click.option("--crawl-pages", default=5000, show_default=True, type=click.IntRange(1000), help="Of that crawl.")
@click.option("--psm", is_flag=True, help="Instead: the recall of the probabilistic search against the exact one.")
@click.option("--json", "as_json", is_flag=True, help="One object, with all figures and curves.")
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
    """Evaluate the settings on PAIRS: files of JSON lines with label, a and b, each text or html; .gz is fine.

    Figures come with intervals of 95%, by bootstrap. The threshold of a method alone is chosen by cross-validation:
    what is chosen on some pairs is tried on others.
    """
    if as_table + presets + psm > 1:
        raise click.UsageError("expected one of --table, --presets and --psm")
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    known, settings = read_pairs(pairs), Settings.load(preset=preset)
    if presets:
        costs = preset_costs(known, list(sample_crawl(crawl_pages)), seed=seed)
        _show(console, [each.as_dict() for each in costs], presets_table(costs), as_json)
        return
    if psm:
        recalls = psm_recall(known, settings, range(settings.hamming, MOST_K + 1), seed=seed)
        _show(console, [each.as_dict() for each in recalls], psm_table(recalls), as_json)
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
        console.print(methods_table(found))
        return
    _print(console, found)
    if curves:
        for each in found.alone:
            console.print(_curve(each))


def _show(console: Console, body: list[dict[str, Any]], table: Table, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(body))
    else:
        console.print(table)


def _print(console: Console, found: Evaluation) -> None:
    cost = found.cost
    console.print(f"{found.pairs} pairs, {found.duplicates} near-duplicates; {found.groups} groups share no page")
    console.print(
        f"cost: {cost.probes} probes a page ({cost.tables} tables, {cost.bands} bands), "
        f"{cost.bytes_per_page:.0f} bytes a page"
    )
    console.print(
        f"missed: {found.not_found} near-duplicates that no table finds, {found.refused} that the rule turns down"
    )
    table = Table(box=None, pad_edge=False)
    for number, head in enumerate(_HEADS):
        table.add_column(head, justify="left" if number < 2 else "right")
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
    table = Table(title=alone.name, title_justify="left", box=None, pad_edge=False)
    for head in (alone.threshold, "precision", "recall", "F1"):
        table.add_column(head, justify="right")
    for point in alone.curve:
        figures = (point.precision, point.recall, point.f1)
        table.add_row(f"{point.threshold:g}", *("-" if each != each else f"{each:.3f}" for each in figures))
    return table

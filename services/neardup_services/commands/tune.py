"""`neardup tune`: finds better settings by cross-validation on labelled pairs, and writes a settings file."""

import json
from dataclasses import replace
from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from neardup.evaluation.confusion import Quality
from neardup.evaluation.pairs import read_pairs
from neardup.evaluation.tuning import Limits, Space, held_out, require_unseen
from neardup.evaluation.tuning import tune as search
from neardup.settings import FILE_VARIABLE, Settings
from neardup_services.commands._shared import make_progress


@click.command()
@click.argument(
    "pairs", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="PAIRS..."
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File for the chosen settings, in TOML.")
@click.option(
    "--least-precision",
    default=0.9,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Minimum precision of the chosen settings, from 0 to 1.",
)
@click.option(
    "--most-probes", default=40, show_default=True, type=click.IntRange(1), help="Maximum number of probes per page."
)
@click.option(
    "--test",
    "tests",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Other pairs, on which the chosen settings are measured. None of their pages may occur in PAIRS.",
)
@click.option(
    "--seed", default=0, show_default=True, help="Seed for the folds of cross-validation and for the bootstrap."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def tune(
    pairs: tuple[Path, ...],
    out: Path | None,
    least_precision: float,
    most_probes: int,
    tests: tuple[Path, ...],
    seed: int,
    as_json: bool,
) -> None:
    """Find better settings by cross-validation on labelled pairs.

    Searches features, weights, w (words per shingle), k, bands and thresholds for the best F1 on PAIRS (see
    `neardup evaluate`). The figures rate the search and not the chosen settings: each fold is measured with settings
    that were chosen on the other folds. To measure the settings chosen on all pairs, give other pairs with --test.

    \b
    Example:
      neardup tune pairs.jsonl --out tuned.toml
    """
    known = read_pairs(pairs)
    others = read_pairs(tests) if tests else []
    require_unseen(known, others)
    settings = Settings.load()
    with _progress() as progress:
        task = progress.add_task("measuring", total=Space().measurements)
        limits = Limits(least_precision, most_probes)
        tuned = search(known, settings, limits, seed=seed, measured=lambda: progress.advance(task))
    values = tuned.chosen._asdict()
    tested = held_out(known, others, replace(settings, **values), seed=seed) if others else None
    if out is not None:
        try:
            out.write_text(_toml(tuned.cross_validated, values))
        except OSError as error:
            raise click.ClickException(f"{out}: cannot write: {error.strerror}") from error
    if as_json:
        body = {"settings": values, "probes": tuned.probes, "tried": tuned.tried, "agreed": tuned.agreement}
        figures = {"search": tuned.cross_validated, "before": tuned.before} | (
            {} if tested is None else {"test": tested}
        )
        by_file = {name: each.as_dict() for name, each in tuned.by_file.items()}
        click.echo(json.dumps(body | {name: each.as_dict() for name, each in figures.items()} | {"by_file": by_file}))
        return
    click.echo(f"tried {tuned.tried:,} settings; chosen settings, with the share of folds that chose the same value:")
    for name, value in values.items():
        click.echo(f"  {name} = {_written(value)}  ({tuned.agreement[name]:.0%})")
    click.echo(f"  {tuned.probes} probes per page")
    click.echo(_line("current settings, on these pairs", tuned.before))
    click.echo(_line("search, on pairs it has not seen", tuned.cross_validated))
    if len(tuned.by_file) > 1:
        for name, each in tuned.by_file.items():
            click.echo(_line(f"  of which in {name}", each))
    if tested is not None:
        click.echo(_line("chosen settings, on the pairs of --test", tested))
    if tuned.cross_validated.f1.value <= tuned.before.f1.value:
        click.echo("keep the current settings: the search found none that are better on pairs it has not seen")
    if out is not None:
        click.echo(f"set {FILE_VARIABLE}={out} to use them")


def _line(name: str, each: Quality) -> str:
    shown = f"precision {each.precision.value:.3f}, recall {each.recall.value:.3f}"
    return f"{name}: {shown}, F1 {each.f1.value:.3f} ({each.f1.low:.2f} to {each.f1.high:.2f})"


def _toml(honest: Quality, values: dict[str, object]) -> str:
    about = f"# {_line('neardup tune: search, on pairs it has not seen', honest)}"
    return "\n".join([about, *(f"{name} = {_written(value)}" for name, value in values.items()), ""])


def _written(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else json.dumps(value)


def _progress() -> Progress:
    return make_progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )

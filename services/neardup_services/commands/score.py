"""`neardup score`: measures precision and recall on a generated crawl."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from neardup.errors import InvalidVerdict
from neardup.evaluation.score import ALL, Score, Tally
from neardup.evaluation.score import score as score_of
from neardup.messages.verdicts import read_verdict
from neardup.sample.truth import truths_in
from neardup.types import Verdict
from neardup_services.commands._shared import make_table, output_console

_HEADS: Final = (
    "kind", "pages", "duplicates", "found", "wrong group", "false alarms", "no verdict", "precision", "recall"
)  # fmt: skip


@click.command()
@click.argument("verdicts", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("truth", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def score(verdicts: Path, truth: Path, as_json: bool) -> None:
    """Measure precision and recall on a generated crawl.

    Compares the VERDICTS file of a run with the TRUTH file that `neardup sample` wrote.

    \b
    Example:
      neardup score verdicts.jsonl truth.jsonl
    """
    result = score_of(_verdicts_in(verdicts), (each for _, each in truths_in(truth)))
    if as_json:
        kinds = {kind: _fields(tally) for kind, tally in sorted(result.kinds.items())}
        hosts = {name: _fields(tally) for name, tally in sorted(result.hosts.items())}
        body = {ALL: _fields(result.total), "not_scored": result.not_scored, "kinds": kinds, "hosts": hosts}
        click.echo(json.dumps(body))
    else:
        _print(result)


def _verdicts_in(path: Path) -> Iterator[Verdict]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                if not line.lstrip().startswith(b"{"):
                    raise ValueError("not a JSON object")
                yield read_verdict(line)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InvalidVerdict(
                    f"{path}, line {number}: expected a verdict as a JSON object, got: {error!r}"
                ) from error


def _fields(tally: Tally) -> dict[str, object]:
    return {**asdict(tally), "precision": tally.precision, "recall": tally.recall}


def _print(result: Score) -> None:
    table = make_table(*_HEADS)
    parts = [*sorted(result.hosts.items(), reverse=True), *sorted(result.kinds.items())]
    for kind, tally in [(ALL, result.total), *parts]:
        counts = (tally.pages, tally.duplicates, tally.found, tally.wrong_group, tally.false_alarms)
        table.add_row(
            kind, *map(str, counts), str(tally.without_verdict), _share(tally.precision), _share(tally.recall)
        )
    console = output_console()
    console.print(table)
    console.print(f"{result.not_scored} pages were not scored, because they are borderline cases or have no text")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"

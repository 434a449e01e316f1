"""`neardup recluster`: runs the offline pass."""

import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

import click
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn

from neardup.deployment.deployment import corpus_address
from neardup.offline.corpus.corpus import Corpus
from neardup.offline.options import Options
from neardup.offline.passes.recluster import RESULTS, reset_pass, run_pass
from neardup.offline.report.report import Report
from neardup.offline.report.text import as_json, html, text
from neardup.settings import PAIR_SOURCES, Settings
from neardup_services.commands._shared import make_progress, state_option

EXIT_INTERRUPTED: Final = 130


@click.command()
@state_option
@click.option(
    "--corpus",
    "address",
    help="Directory or fsspec URL of the corpus. Default: NEARDUP_CORPUS, or `corpus` in the state directory.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Directory for the results. Default: `clusters` in the state directory.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="Engine that runs the pass: this machine or a Spark cluster.",
)
@click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="Address of the Spark master. Used only with `--engine spark`.",
)
@click.option(
    "--sources",
    "names",
    help=f"Sources of pairs, joined by +: {', '.join(PAIR_SOURCES)}. Default: NEARDUP_PAIR_SOURCES.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Discard the results of earlier passes and process all documents. Needed after a change of settings.",
)
@click.option("--json", "as_object", is_flag=True, help="Print the summary as one JSON object.")
@click.option("--report", "page", type=click.Path(path_type=Path), help="File for the summary, as HTML.")
def recluster(
    state: Path | None,
    address: str | None,
    out: Path | None,
    engine: str,
    master: str,
    names: str | None,
    full: bool,
    as_object: bool,
    page: Path | None,
) -> None:
    """Cluster all pages, and find verdicts that were wrong.

    The offline pass groups the documents of the corpus into clusters. It compares only documents that are new since the
    last pass, and resumes if it was interrupted. The results are Parquet files (clusters, contained, edges,
    overturned) and the index for `neardup lookup`, `similar`, `moved` and `changes`.

    Exit code 0: done; 1: the pass failed; 130: interrupted, the next run resumes.

    \b
    Example:
      neardup recluster --state state --report report.html
    """
    settings = Settings.load(pair_sources=tuple(names.split("+"))) if names else Settings.load()
    options = Options.of(settings)
    if state is not None:
        # A state directory that is given as an option has its own corpus.
        settings = replace(settings, state=state, corpus="")
    address = address or corpus_address(settings)
    out = out or settings.state / RESULTS
    if not Corpus(address).files():
        raise click.ClickException(f"{address}: expected the files of a corpus, found none; check --state or --corpus")
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        if full:
            reset_pass(out)
        if engine == "spark":
            report = _on_spark(address, out, options, master)
        else:
            with _Bars() as bars:
                report = run_pass(address, out, options, bars.update)
    except KeyboardInterrupt:
        click.echo(f"interrupted; run the command again to resume, finished phases are kept in {out}", err=True)
        sys.exit(EXIT_INTERRUPTED)
    finally:
        signal.signal(signal.SIGTERM, before)
    if page is not None:
        page.write_text(html(report))
    click.echo(as_json(report) if as_object else text(report))


def _on_spark(address: str, out: Path, options: Options, master: str) -> Report:
    try:
        from neardup.offline.spark.engine import recluster_spark
    except ImportError as error:
        raise click.ClickException(
            f"expected pyspark for --engine spark, got: {error}; install it with pip install 'neardup[spark]'"
        ) from error
    return recluster_spark(address, out, options, master)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class _Bars:
    """A progress bar for each phase."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskID] = {}
        self._progress = make_progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        )

    def __enter__(self) -> "_Bars":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def update(self, phase: str, done: int, of: int) -> None:
        """Show the progress of a phase: `done` steps of `of`."""
        if phase not in self._tasks:
            self._tasks[phase] = self._progress.add_task(phase)
        self._progress.update(self._tasks[phase], completed=done, total=of)

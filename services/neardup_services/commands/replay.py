"""`neardup replay STATE`: what other settings would have decided."""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from neardup.errors import WrongState
from neardup.inputs import open_input
from neardup.inputs.folder import DEFAULT_PREFIX
from neardup.offline.corpus.columns import gather
from neardup.offline.corpus.corpus import Corpus
from neardup.replay.differences import Differences, differences
from neardup.replay.labelling import pages_by_number, pairs_to_label
from neardup.replay.replaying import ReplayResult, replay_pages, replay_sketches
from neardup.settings import Settings
from neardup.types import Page, PageRef
from neardup_services.commands.preset import preset_option


@click.command()
@click.argument("state", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--settings", "other", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of the other settings, as TOML; it wins over variables.",
)  # fmt: skip
@preset_option
@click.option(
    "--pages", "inputs", multiple=True,
    help="Inputs that the state was made of, in that order: needed for settings that change signatures.",
)  # fmt: skip
@click.option("--url-prefix", default=DEFAULT_PREFIX, show_default=True, help="Of the urls of pages from folders.")
@click.option("--examples", default=5, show_default=True, type=click.IntRange(0), help="Pages to show of each change.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File for all of them, to be labelled.")
@click.option("--json", "as_json", is_flag=True, help="One object, for programs.")
def replay(
    state: Path,
    other: Path | None,
    preset: str,
    inputs: tuple[str, ...],
    url_prefix: str,
    examples: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Tell what other settings would have decided about the pages of a STATE directory.

    The documents go through the stages once more, in the order of all pages, from the sketches that the state's corpus
    keeps: thresholds, k, tables and bands can be replayed. Settings that change signatures need the pages themselves.
    Nothing in STATE is changed. With --out every difference becomes a pair for `neardup evaluate`, its label open.
    """
    settings = Settings.load(preset=preset, other=other)
    corpus = Corpus(str(state / "corpus"))
    if not corpus.files():
        raise WrongState(f"{state}: expected a state directory with a corpus, got none")

    def pages() -> Iterator[Page]:
        for name in inputs:
            for item in open_input(name, url_prefix=url_prefix).items():
                if item.page is not None:  # what is no page got no number
                    yield item.page

    console = Console(stderr=True)
    with (
        tempfile.TemporaryDirectory(prefix="neardup-replay-") as place,
        Progress(console=console, disable=not console.is_terminal, transient=True) as progress,
    ):
        documents = gather(corpus, Path(place) / "documents")
        task = progress.add_task("replaying", total=len(documents))

        def taken(done: int) -> None:
            progress.update(task, completed=done)

        stages = Path(place) / "stages"
        if inputs:
            replayed = replay_pages(documents, pages(), settings, stages, taken)
        else:
            replayed = replay_sketches(documents, settings, stages, taken)
    found = differences(replayed.was, replayed.now)
    if out is not None:
        _write(out, found, replayed, pages() if inputs else None)
    if as_json:
        click.echo(json.dumps(found.as_dict(replayed.pages, examples)))
    else:
        _print(found, replayed.pages, examples)


def _write(out: Path, found: Differences, replayed: ReplayResult, pages: Iterator[Page] | None) -> None:
    wanted = [each for some in found.found.values() for each in some]
    numbers = {number for each in wanted for number in (each.page, each.other) if number is not None}
    texts = {} if pages is None else pages_by_number(pages, numbers)
    try:
        with out.open("w") as file:
            for pair in pairs_to_label(wanted, replayed.pages, texts):
                file.write(json.dumps(pair, ensure_ascii=False) + "\n")
    except OSError as error:
        raise click.ClickException(f"{out}: cannot write: {error.strerror}") from error


def _print(found: Differences, pages: Sequence[PageRef], examples: int) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(f"{found.pages:,} pages, {found.count:,} would be decided otherwise")
    for name, counts in (("was", found.was), ("now", found.now)):
        console.print(f"{name}: " + ", ".join(f"{count:,} {kind}" for kind, count in counts.items()))
    moved = sum(found.still_duplicates.values())
    if moved:
        console.print(f"{moved:,} stay duplicates, of another page or in another way")
    for (was, now), some in found.found.items():
        table = Table(title=f"{was} → {now}: {len(some):,}", title_justify="left", box=None, pad_edge=False)
        for head in ("resemblance", "contained", "bits", "page", "of"):
            table.add_column(head, justify="right" if head in ("resemblance", "contained", "bits") else "left")
        for each in some[:examples]:
            figures = (each.resemblance, each.containment, each.hamming)
            shown = ("-" if value is None else f"{value:.4g}" for value in figures)
            table.add_row(*shown, pages[each.page].url, "" if each.other is None else pages[each.other].url)
        console.print(table)

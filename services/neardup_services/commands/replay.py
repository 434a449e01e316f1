"""`neardup replay`: compares past verdicts with those of other settings."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

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
from neardup_services.commands._shared import make_progress, make_table, output_console, preset_option


@click.command()
@click.argument("state", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--settings", "other", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the other settings, in TOML. It takes precedence over environment variables.",
)  # fmt: skip
@preset_option
@click.option(
    "--pages", "inputs", multiple=True,
    help="Input of the runs that created the state. Can be repeated, in the order of the runs. Needed for settings "
    "that change signatures.",
)  # fmt: skip
@click.option("--url-prefix", default=DEFAULT_PREFIX, show_default=True, help="Prefix of the urls of pages in folders.")
@click.option(
    "--examples",
    default=5,
    show_default=True,
    type=click.IntRange(0),
    help="Maximum number of pages to show per kind of change.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for all differences, as pairs to label, in JSON lines.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
    """Compare past verdicts with those of other settings.

    The stages process the documents of the STATE directory again, in the order of all pages, from the sketches in the
    corpus. This is enough to compare thresholds, k, tables and bands; settings that change signatures need the pages
    themselves (--pages). STATE does not change. With --out every difference becomes a pair without a label, which you
    add for `neardup evaluate`.

    \b
    Example:
      neardup replay state --settings tuned.toml
    """
    settings = Settings.load(preset=preset, other=other)
    corpus = Corpus(str(state / "corpus"))
    if not corpus.files():
        raise WrongState(
            f"{state}: expected a state directory with a corpus, found no corpus; `neardup dedup --state` writes one"
        )

    def pages() -> Iterator[Page]:
        for name in inputs:
            for item in open_input(name, url_prefix=url_prefix).items():
                if item.page is not None:  # items that are not pages have no number
                    yield item.page

    with tempfile.TemporaryDirectory(prefix="neardup-replay-") as place, make_progress() as progress:
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
    console = output_console()
    console.print(f"{found.pages:,} pages, {found.count:,} would have another verdict")
    for name, counts in (("was", found.was), ("now", found.now)):
        console.print(f"{name}: " + ", ".join(f"{count:,} {kind}" for kind, count in counts.items()))
    moved = sum(found.still_duplicates.values())
    if moved:
        console.print(f"{moved:,} remain duplicates, but of another page or with another relation")
    for (was, now), some in found.found.items():
        table = make_table("resemblance", "contained", "bits", left=0, title=f"{was} → {now}: {len(some):,}")
        table.add_column("page")
        table.add_column("of")
        for each in some[:examples]:
            figures = (each.resemblance, each.containment, each.hamming)
            shown = ("-" if value is None else f"{value:.4g}" for value in figures)
            table.add_row(*shown, pages[each.page].url, "" if each.other is None else pages[each.other].url)
        console.print(table)

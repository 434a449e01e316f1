"""A replay: decisions about the pages of a corpus, as recorded and under other settings.

A replay uses either the recorded sketches in the order of all pages, or the original pages, for settings that change
signatures. Both run through the stages of the stream in one process, in a temporary directory.

Even with equal settings, some decisions may differ: the corpus has the first verdict on a page without its revision,
and a replay also compares with documents that were forgotten or had expired. A replay of pages gives all pages the same
time, so none expires.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from neardup.deployment.deployment import Deployment
from neardup.errors import InputError, WrongState
from neardup.index.psm.search import Psm
from neardup.log import PlainRecord, Record
from neardup.messages.pages import write_page
from neardup.offline.corpus.columns import ColumnStore
from neardup.replay.in_turn import InTurn
from neardup.replay.outcome import Outcome, recorded_outcome
from neardup.replay.recorded import Recorded, require_replayable
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions
from neardup.stream.featurizer.stage import BatchFeaturizer
from neardup.types import Page, PageRef

BATCH: Final = 1000
"""Number of pages per batch."""


class ReplayResult(NamedTuple):
    """Both outcomes by page number, and the URL and document of each page."""

    was: Outcome
    now: Outcome
    pages: list[PageRef]


def replay_sketches(
    corpus: ColumnStore, settings: Settings, directory: Path, on_progress: Callable[[int], None] = lambda pages: None
) -> ReplayResult:
    """Replay from the sketches of a corpus. Documents are numbered in the order of all pages.

    `on_progress` receives the number of pages done. Raises SettingsError if the settings need the original pages, and
    StateError if the corpus cannot be used.
    """
    require_replayable(corpus.manifest.signature_version, settings)
    was = recorded_outcome(corpus, corpus.rank, len(corpus))
    recorded = Recorded(corpus, SignatureOptions.of(settings))
    now = _decide(settings, recorded, recorded.records(BATCH), len(corpus), directory, on_progress)
    pages = [PageRef(corpus.url(row), str(corpus.document(row))) for row in corpus.order.tolist()]
    return ReplayResult(was, now, pages)


def replay_pages(
    corpus: ColumnStore,
    pages: Iterable[Page],
    settings: Settings,
    directory: Path,
    on_progress: Callable[[int], None] = lambda pages: None,
) -> ReplayResult:
    """Replay from the original pages, which must be the same pages in the same order as in the recorded run.

    Raises WrongState if the corpus is not of an embedded run, and InputError if the pages differ.
    """
    if corpus.id[:, 1].any():
        raise WrongState(
            "expected the corpus of an embedded run, with one partition of pages, got several: its pages have no "
            "numbers; replay it from sketches"
        )
    known = int(corpus.id[:, 2].max(initial=-1)) + 1
    urls = [""] * known
    for row, number in enumerate(corpus.id[:, 2].tolist()):
        urls[number] = corpus.url(row)
    was = recorded_outcome(corpus, corpus.id[:, 2], known)
    deployment = Deployment(settings)
    try:
        records = _records(_check_urls(pages, urls))
        now = _decide(settings, deployment.page_pool, records, known, directory, on_progress, deployment.psm)
    finally:
        deployment.page_pool.close()
    return ReplayResult(was, now, [PageRef(url, f"0:{number}") for number, url in enumerate(urls)])


def _decide(
    settings: Settings,
    batch_featurizer: BatchFeaturizer,
    batches: Iterable[list[Record]],
    pages: int,
    directory: Path,
    on_progress: Callable[[int], None],
    psm: Psm | None = None,
) -> Outcome:
    outcome = Outcome.empty(pages)
    done = 0
    settings = replace(settings, owners=1, verdict_format="json")
    with InTurn(settings, batch_featurizer, directory, psm) as stream:
        for records in batches:
            outcome.record(stream.take(records))
            done += len(records)
            on_progress(done)
    return outcome


def _records(pages: Iterator[Page]) -> Iterator[list[Record]]:
    number = 0
    while some := list(islice(pages, BATCH)):
        yield [
            PlainRecord(topic="", partition=0, offset=offset, timestamp=0, key=None, value=write_page(page), headers=())
            for offset, page in enumerate(some, start=number)
        ]
        number += len(some)


def _check_urls(pages: Iterable[Page], urls: list[str]) -> Iterator[Page]:
    """Yield one page per URL and check that the URLs agree. The URL of a skipped page is filled in."""
    given = iter(pages)
    for number, url in enumerate(urls):
        page = next(given, None)
        if page is None:
            raise InputError(
                f"expected the {len(urls)} pages that the state was made of, got {number}; give the same inputs"
            )
        if url and page.url != url:
            raise InputError(
                f"page {number}: expected {url}, as in the state, got {page.url}; give the same inputs in the same "
                "order"
            )
        urls[number] = page.url
        yield page

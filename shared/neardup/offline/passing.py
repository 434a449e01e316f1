"""A whole offline pass of a deployment: clusters by one engine or the other, the index for questions, the report."""

from pathlib import Path
from typing import Final

from neardup.deployment import corpus_address
from neardup.offline.corpus import Corpus
from neardup.offline.durable import write_text
from neardup.offline.index import build_index
from neardup.offline.options import Options
from neardup.offline.phases import Progress
from neardup.offline.recluster import gathered, recluster, source_directory
from neardup.offline.rendering import html
from neardup.offline.report import Report
from neardup.offline.sources import make_source
from neardup.settings import Settings

RESULTS: Final = "clusters"
"""Folder of the state directory where passes leave their results."""
PAGE: Final = "report.html"


def results_of(settings: Settings) -> Path:
    """Where the results of a deployment's passes are."""
    return settings.state / RESULTS


def run_pass(settings: Settings, progress: Progress = lambda phase, done, of: None) -> Report:
    """Cluster what is in the corpus, make the index and the report. May block for long; raises StateError.

    What `progress` raises ends the pass; the next one goes on where it was.
    """
    directory, options = results_of(settings), Options.of(settings)
    sources = [make_source(name, source_directory(directory, name), options) for name in options.pair_sources]
    report = recluster(Corpus(corpus_address(settings)), directory, options, sources, progress)
    progress("index", 0, 1)
    build_index(directory, gathered(directory))
    write_text(directory / PAGE, html(report))
    return report

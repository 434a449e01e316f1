"""An offline pass as users run it: the sources that the options name, the clusters, and the report as a page."""

from pathlib import Path
from typing import Final

from neardup.offline.corpus import Corpus
from neardup.offline.durable import write_text
from neardup.offline.options import Options
from neardup.offline.phases import Progress
from neardup.offline.recluster import recluster, source_directory
from neardup.offline.rendering import html
from neardup.offline.report import Report
from neardup.offline.sources import make_source

RESULTS: Final = "clusters"
"""Folder of the state directory where passes leave their results."""
PAGE: Final = "report.html"


def run_pass(
    address: str, directory: Path, options: Options, progress: Progress = lambda phase, done, of: None
) -> Report:
    """Cluster the corpus at an address, with all that belongs to it. May block for long; raises StateError.

    What `progress` raises ends the pass; the next one goes on where it was.
    """
    sources = [make_source(name, source_directory(directory, name), options) for name in options.pair_sources]
    report = recluster(Corpus(address), directory, options, sources, progress)
    write_text(directory / PAGE, html(report))
    return report

"""An offline pass as users run it, with the sources that the options name."""

from pathlib import Path
from typing import Final

from neardup.offline.corpus.corpus import Corpus
from neardup.offline.layout import source_directory
from neardup.offline.options import Options
from neardup.offline.pairs.sources import make_source
from neardup.offline.passes.phases import Progress
from neardup.offline.passes.recluster import drop_forgotten, recluster
from neardup.offline.report.report import Report

RESULTS: Final = "clusters"
"""Folder of the state directory where passes leave their results."""


def run_pass(
    address: str, directory: Path, options: Options, progress: Progress = lambda phase, done, of: None
) -> Report:
    """Cluster the corpus at an address, with all that belongs to it. May block for long; raises StateError.

    If documents of the pass before were forgotten since, it is one over everything.
    What `progress` raises ends the pass; the next one goes on where it was.
    """
    corpus = Corpus(address)
    drop_forgotten(corpus, directory)
    sources = [make_source(name, source_directory(directory, name), options) for name in options.pair_sources]
    return recluster(corpus, directory, options, sources, progress)

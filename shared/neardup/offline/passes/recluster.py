"""The offline pass on one machine: imports new documents of the corpus and runs all phases.

    <directory>/clusters.parquet ...     results, report.json and report.html
    <directory>/work/run.json            the last run that was started
    <directory>/work/gathered/           the column store
    <directory>/work/sources/NAME/       state of a pair source
    <directory>/work/PHASE               output of a phase

An interrupted run is resumed and finished before more documents are imported.
"""

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from neardup.errors import WrongState
from neardup.offline.corpus.columns import ColumnStore, gather
from neardup.offline.corpus.corpus import Corpus
from neardup.offline.corpus.forgetting import ForgottenIds
from neardup.offline.layout import DOCUMENTS, documents_directory, source_directory, work_directory
from neardup.offline.options import Options
from neardup.offline.pairs.pair_source import PairSource
from neardup.offline.pairs.sources import make_source
from neardup.offline.passes import run_file
from neardup.offline.passes.lock import LOCK, exclusive_pass
from neardup.offline.passes.phases import Progress, RunKey
from neardup.offline.passes.run import PassRun
from neardup.offline.report.files import write_report
from neardup.offline.report.report import Phase, Report

RESULTS: Final = "clusters"
"""Directory in the state directory where passes write their results."""
_DROPPED: Final = "dropped-"


def run_pass(
    address: str, directory: Path, options: Options, progress: Progress = lambda phase, done, of: None
) -> Report:
    """Cluster the corpus at an address with the pair sources that the options name. May block for hours.

    If documents of the previous pass have been forgotten since then, the pass recomputes everything. An exception from
    `progress` aborts the pass, and the next pass resumes it. Raises StateError.
    """
    corpus = Corpus(address)
    reset_if_forgotten(corpus, directory)
    sources = [make_source(name, source_directory(directory, name), options) for name in options.pair_sources]
    return recluster(corpus, directory, options, sources, progress)


def recluster(
    corpus: Corpus,
    directory: Path,
    options: Options,
    sources: Sequence[PairSource],
    progress: Progress = lambda phase, done, of: None,
) -> Report:
    """Cluster all documents of the corpus and write the results to the directory. May block for hours.

    Raises StateError when the directory is in use or was made with other options, or when the corpus has a different
    signature version than the options.
    """
    assert [source.name for source in sources] == list(options.pair_sources)
    begun = time.perf_counter()
    work = work_directory(directory)

    def run_from(documents: ColumnStore, run: RunKey) -> PassRun:
        return PassRun(directory, work, documents, run=run, options=options, sources=sources, progress=progress)

    with exclusive_pass(work):
        last = run_file.load(work, options)
        known = 0 if last is None else last.rows
        phases: list[Phase] = []
        open_documents(directory).verify()
        if last is not None and not PassRun.is_finished(work, last):
            known = last.first
            phases = run_from(open_documents(directory), last).run().phases
        started, size = time.perf_counter(), _bytes_in(work / DOCUMENTS)
        forgotten = corpus.forgotten()
        documents = gather(corpus, work / DOCUMENTS, lambda done, of: progress("gather", done, of), forgotten)
        _check_signatures(documents, options)
        gathering = Phase("gather", time.perf_counter() - started, _bytes_in(work / DOCUMENTS) - size)
        this = run_file.next_run(last, documents.manifest)
        run_file.begin(work, options, this)
        report = run_from(documents, this).run()
        phases += [gathering, *report.phases]
        seconds = time.perf_counter() - begun
        report = replace(report, new_documents=this.rows - known, phases=phases, seconds=seconds)
        write_report(directory, report)
        return report


def reset_pass(directory: Path) -> None:
    """Delete all intermediate files, so that the next pass recomputes everything, with any options. Raises StateError.

    The results remain until the next pass replaces them, because its revisions continue the revisions in the results.
    """
    work = work_directory(directory)
    if not work.exists():
        return
    with exclusive_pass(work):
        # Rename each directory before removing it, and remove the column store last. After a crash, the remaining files
        # are then consistent.
        for path in work.glob(f"{_DROPPED}*"):
            shutil.rmtree(path)
        for path in sorted(work.iterdir(), key=lambda path: (path.name == DOCUMENTS, path.name != run_file.FILE)):
            if path.is_dir():
                shutil.rmtree(path.rename(work / f"{_DROPPED}{path.name}"))
            elif path.name != LOCK:
                path.unlink()


def reset_if_forgotten(corpus: Corpus, directory: Path) -> None:
    """Reset the pass if documents of the last run have been forgotten, because any result may depend on them.

    Call this before pair sources are created, which load their state. Raises StateError.
    """
    if ForgottenIds(corpus.forgotten()).contains(open_documents(directory).id).any():
        reset_pass(directory)


def open_documents(directory: Path) -> ColumnStore:
    """Open the column store of the last run in a directory. Raises StateError."""
    return ColumnStore(documents_directory(directory))


def _check_signatures(documents: ColumnStore, options: Options) -> None:
    found = documents.manifest.signature_version
    if len(documents) and found != options.signature_version:
        raise WrongState(
            f"expected a corpus with signatures {options.signature_version}, got {found}: use the settings that it was "
            "created with"
        )


def _bytes_in(directory: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(directory)) if directory.exists() else 0

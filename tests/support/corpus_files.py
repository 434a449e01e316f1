"""Corpus files written in one step."""

from collections.abc import Sequence

from neardup.messages.settled import Batch
from neardup.offline.corpus.corpus import Corpus, CorpusFile


def write_file(corpus: Corpus, file: CorpusFile, batches: Sequence[Batch]) -> None:
    """Add a file to a corpus. All batches must have the same signature version."""
    corpus.prepare(file, batches)
    corpus.publish(file)

"""Corpora made of given documents."""

from collections.abc import Sequence
from pathlib import Path

from neardup.messages.settled import Batch, Settled, read_batch, write_documents
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.types import Document
from tests.support.corpus_files import write_file

SIGNATURES = "nd1"


def batches(documents: Sequence[Document | Settled], signature_version: str = SIGNATURES) -> list[Batch]:
    """Write the documents as messages and read them back."""
    settled = [each if isinstance(each, Settled) else Settled(each, None) for each in documents]
    return [read_batch(value) for value in write_documents(settled, signature_version)]


def add(corpus: Corpus, documents: Sequence[Document | Settled], first: int = 0, partition: int = 0) -> CorpusFile:
    """Add a file with these documents; each document takes one offset of the topic."""
    file = CorpusFile(partition, first, first + len(documents) - 1)
    write_file(corpus, file, batches(documents))
    return file


def corpus_of(directory: Path, documents: Sequence[Document | Settled]) -> Corpus:
    """Create a corpus with one file."""
    corpus = Corpus(str(directory))
    add(corpus, documents)
    return corpus

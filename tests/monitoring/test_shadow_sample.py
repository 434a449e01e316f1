"""Tests of the shadow sample against a comparison of all pairs, and of its cost."""

from collections.abc import Sequence

import numpy as np
import pytest
from prometheus_client import REGISTRY

from neardup.matching.match import Match, match
from neardup.matching.rule import Thresholds
from neardup.messages.settled import Batch, Settled, read_batch, write_documents
from neardup.monitoring.recall import Recall
from neardup.monitoring.shadow_sample import Shadow
from neardup.types import Document
from tests.support.documents import document, shingles

MATCH = match(document(1, 1), document(0, 1), Thresholds())


class Checks(Recall):
    """A recall that records its checks."""

    def __init__(self) -> None:
        super().__init__("shadow", 0)
        self.all: list[bool] = []

    def check(self, found: bool) -> None:
        self.all.append(found)


def batches(documents: Sequence[Document], matches: Sequence[Match | None], size: int) -> list[Batch]:
    """Split the documents into messages of `size` documents."""
    settled = [Settled(*pair) for pair in zip(documents, matches, strict=True)]
    values = [next(write_documents(settled[start : start + size], "v")) for start in range(0, len(settled), size)]
    return [read_batch(value) for value in values]


def crawl(count: int = 120) -> list[Document]:
    """Return documents of a few families in random order, some similar to and some contained in others."""
    rng = np.random.default_rng(5)
    made = []
    for offset in rng.permutation(count).tolist():
        family = shingles(int(rng.integers(0, 12)), 300)
        size = int(rng.choice([40, 220, 260, 300]))
        own = shingles(1000 + offset, int(rng.choice([0, 0, 30, 200])))
        made.append(document(offset, np.concatenate([family[:size], own])))
    return made


def shadowed(some: Sequence[Batch], *, share: float = 1.0, documents: int = 10_000, seed: int = 0) -> list[bool]:
    checks = Checks()
    shadow = Shadow(Thresholds(), checks, share=share, documents=documents, seed=seed)
    for batch in some:
        shadow.take(batch)
    return checks.all


@pytest.mark.parametrize("size", [1, 7, 120])
def test_exactly_the_documents_that_duplicate_a_recent_one_are_checked(size: int) -> None:
    documents = crawl()
    # The stream has found every second duplicate.
    matches = [MATCH if each.id.offset % 2 else None for each in documents]
    expected = []
    for number, each in enumerate(documents):
        # Alone in a message or together with later documents: the shadow reads all documents of a message first.
        seen = documents[: (number // size + 1) * size]
        if any(match(each, other, Thresholds()) for other in seen if other.id < each.id):
            expected.append(each.id.offset % 2 == 1)
    assert 20 < len(expected) < 110
    assert shadowed(batches(documents, matches, size)) == expected


def test_a_redelivered_document_is_not_a_duplicate_of_itself() -> None:
    [batch] = batches([document(1, 1)], [None], 1)
    assert shadowed([batch, batch]) == []


def test_exact_copies_are_not_checked() -> None:
    first, copy = document(1, 1, tokens="t"), document(2, 1, tokens="t")
    found = match(copy, first, Thresholds())
    assert shadowed(batches([first, copy], [None, found], 1)) == []


def test_a_sample_is_a_function_of_the_seed() -> None:
    documents = crawl()
    some = batches(documents, [None] * len(documents), 10)
    everything, half = shadowed(some), shadowed(some, share=0.5)
    assert len(everything) / 4 < len(half) < len(everything) * 3 / 4
    assert shadowed(some, share=0.5) == half
    assert len({len(shadowed(some, share=0.5, seed=seed)) for seed in range(6)}) > 1
    assert shadowed(some, share=0.0) == []


def test_the_number_of_recent_documents_to_compare_with_is_limited() -> None:
    first, others, again = document(0, 1), [document(9 + number, 9 + number) for number in range(20)], document(50, 1)
    documents = [first, *others, again]
    some = batches(documents, [None] * len(documents), 2)
    assert shadowed(some, documents=22) == [False]
    assert shadowed(some, documents=10) == []


def test_gauges_end_with_the_shadow() -> None:
    shadow = Shadow(Thresholds(), Recall("shadow", 88), share=1.0, documents=100, seed=0)
    for batch in batches([document(0, 1), document(1, 1)], [None, MATCH], 1):
        shadow.take(batch)
    labels = {"source": "shadow", "partition": "88"}
    assert REGISTRY.get_sample_value("neardup_recall_ratio", labels) == 1.0
    shadow.close()
    assert REGISTRY.get_sample_value("neardup_recall_ratio", labels) is None

"""Tests of canaries: they are near-copies by the rule, follow their page, are found like pages, and leave no trace."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from neardup.log import Output, PlainRecord
from neardup.matching.match import match
from neardup.matching.rule import Thresholds
from neardup.messages.pages import CANARY_HEADER, document_id, read_page, write_page
from neardup.messages.verdicts import read_verdict
from neardup.monitoring.near_copy import NearCopies, NearCopy
from neardup.settings import Settings
from neardup.signatures.packed_sketch import pack_sketch
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.stream.canary.stage import CanaryStage
from neardup.types import AFTER_ALL, Document, DocumentId, Kind, Page, Relation, Verdict
from tests.support.documents import document, page, shingles, text_of
from tests.support.owner_harness import Desk, desk
from tests.support.wired import Wired

SETTINGS = Settings(prefix="t", owners=2, tables=4, bands="3x4")
SIGNATURES = Signatures(SignatureOptions.of(SETTINGS), everything=False)
COPIES = NearCopies(SIGNATURES, Thresholds())


def canary(offset: int, words: list[str], note: bytes = b"canary") -> PlainRecord:
    return page(offset, words)._replace(headers=((CANARY_HEADER, note),))


def canary_verdicts(stream: Wired) -> list[Verdict]:
    """Return the verdicts on canaries that the operator receives."""
    return [read_verdict(record.value or b"") for record in stream.sent[stream.topics.canaries, 0]]


def checks(result: str) -> float:
    return REGISTRY.get_sample_value("neardup_recall_checks_total", {"source": "canary", "result": result}) or 0.0


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Wired]:
    wired = Wired(SETTINGS, tmp_path)
    yield wired
    wired.close()


# Making


def as_document(of: Page, offset: int) -> Document:
    signature = SIGNATURES.of(of)
    assert signature.fingerprint is not None
    assert signature.sketches is not None
    place = DocumentId(offset, 0, offset)
    return Document(
        id=place,
        url=of.url,
        fetched_at=None,
        fingerprint=signature.fingerprint.value,
        checksums=signature.checksums,
        size=1,
        sketch=pack_sketch(signature.sketches),
    )


@pytest.mark.parametrize(
    "original",
    [
        Page("http://a/", html=("<p>" + " ".join(text_of(1, 400))).encode()),
        Page("http://a/", text=" ".join(text_of(2, 60))),
        Page("http://a/", html="<p>これはとても長い文章です。川は北の丘から流れて海まで九十マイル。".encode() * 9),
        Page("http://a/", html=("<p>Straße " + " ".join(text_of(4, 90))).encode("latin-1"), charset="latin-1"),
    ],
)
def test_a_near_copy_is_a_duplicate_but_not_an_exact_copy(original: Page) -> None:
    resemblances = set()
    for seed in range(40):
        copy = COPIES.of(original, random.Random(seed))
        assert copy is not None
        found = match(as_document(copy.page, 2), as_document(original, 1), Thresholds())
        assert found is not None
        assert found.relation == copy.relation not in (Relation.IDENTICAL, Relation.SAME_TEXT)
        assert found.resemblance == copy.resemblance
        resemblances.add(copy.resemblance)
    assert len(resemblances) > 5
    assert min(resemblances) < 0.8


def test_the_same_seed_makes_the_same_copy() -> None:
    original = Page("http://a/", text=" ".join(text_of(3)))
    assert COPIES.of(original, random.Random(5)) == COPIES.of(original, random.Random(5))
    assert COPIES.of(original, random.Random(5)) != COPIES.of(original, random.Random(6))


@pytest.mark.parametrize("text", ["", "too short", "a b c d e f g h"])
def test_a_page_with_little_text_has_no_near_copy(text: str) -> None:
    assert COPIES.of(Page("http://a/", text=text), random.Random(0)) is None


# Planting


def canary_stage(share: float = 1.0, seed: int = 0, most_bytes: int = 10_000) -> CanaryStage:
    return CanaryStage(COPIES, topic="t.pages", share=share, seed=seed, most_bytes=most_bytes)


def planted(stage: CanaryStage, pages: list[PlainRecord], at_once: int = 1000) -> list[Output]:
    found: list[Output] = []
    for start in range(0, len(pages), at_once):
        (wave,) = stage.process(pages[start : start + at_once]).waves
        found += wave
    return found


def test_a_canary_follows_its_page_and_has_a_note() -> None:
    pages = [page(offset, text_of(offset))._replace(partition=3) for offset in range(60)]
    outputs = planted(canary_stage(), pages)
    assert len(outputs) >= 30
    for output in outputs:
        assert (output.topic, output.partition) == ("t.pages", 3)
        ((name, note),) = output.headers
        assert name == CANARY_HEADER
        original = pages[int(note.decode().split("3:")[1].partition(",")[0])]
        assert output.key == read_page(original).url.encode()
        record = PlainRecord("t.pages", 3, 99, 5, output.key, output.value, output.headers)
        assert document_id(record) == DocumentId(AFTER_ALL, 3, 99)
        found = match(as_document(read_page(record), 2), as_document(read_page(original), 1), Thresholds())
        assert found is not None


def test_the_choice_of_pages_depends_on_the_seed_but_not_on_the_batches() -> None:
    pages = [page(offset, text_of(offset)) for offset in range(80)]
    outputs = planted(canary_stage(0.5), pages)
    assert 10 < len(outputs) < 50
    assert planted(canary_stage(0.5), pages, at_once=7) == outputs
    assert planted(canary_stage(0.5, seed=1), pages) != outputs


def test_canaries_large_pages_and_invalid_pages_get_no_canary() -> None:
    large = page(0, text_of(1, 3000))
    assert len(large.value or b"") > 10_000
    some = [canary(0, text_of(1)), large, page(0, b'{"url": 7}'), page(0, None), page(0, ["short"])]
    pages = [each._replace(offset=offset) for offset, each in enumerate(some * 20)]
    assert planted(canary_stage(), pages) == []
    assert planted(canary_stage(share=0.0), [page(offset, text_of(offset)) for offset in range(50)]) == []


def test_the_checkpoint_of_the_canary_stage_is_the_next_offset(tmp_path: Path) -> None:
    stage = canary_stage()
    assert stage.open(tmp_path) is None
    stage.process([page(offset, text_of(offset)) for offset in range(5)])
    assert stage.checkpoint() == 5


# On the way through the stream


def near_copy(words: list[str], seed: int = 1) -> NearCopy:
    copy = COPIES.of(Page("http://a/", html=("<p>" + " ".join(words)).encode()), random.Random(seed))
    assert copy is not None
    return copy


def test_a_canary_is_found_and_its_verdict_is_sent_only_to_the_canaries_topic(stream: Wired) -> None:
    found, words = checks("found"), text_of(1)
    verdicts = stream.take([page(0, words), canary(1, [*words[:-1], "other"], b"canary: near to 0:0")])
    assert [(each.document, each.verdict) for each in verdicts] == [("0:0", Kind.UNIQUE)]
    [verdict] = canary_verdicts(stream)
    assert (verdict.document, verdict.verdict, verdict.relation) == ("0:1", Kind.DUPLICATE, Relation.NEAR)
    assert verdict.duplicate_of is not None
    assert verdict.duplicate_of.document == "0:0"
    assert (verdict.reason, verdict.latency_ms) == ("canary: near to 0:0", None)
    assert verdict.found_by
    assert checks("found") == found + 1


def test_a_canary_without_a_similar_page_is_missed(stream: Wired) -> None:
    missed = checks("missed")
    assert stream.take([page(0, text_of(1)), canary(1, text_of(2))]) != []
    assert [verdict.verdict for verdict in canary_verdicts(stream)] == [Kind.UNIQUE]
    assert checks("missed") == missed + 1


def test_no_page_is_a_duplicate_of_a_canary(stream: Wired) -> None:
    words = text_of(1)
    stream.take([canary(0, words), canary(1, [*words[:-1], "other"])])
    same, near = stream.take([page(2, words), page(3, [*words[:-2], "something", "else"])])
    assert (same.document, same.verdict) == ("0:2", Kind.UNIQUE)
    assert near.duplicate_of is not None
    assert near.duplicate_of.document == "0:2"


def test_a_canary_is_neither_archived_nor_indexed(stream: Wired) -> None:
    stream.take([page(0, text_of(1)), page(1, text_of(2))])
    documents = len(stream.sent[stream.topics.documents, 0])
    held = stream.slice_keys()
    stream.take([canary(2, text_of(3)), canary(3, [*text_of(1)[:-1], "other"])])
    assert len(stream.sent[stream.topics.documents, 0]) == documents
    assert stream.slice_keys() == held
    assert len(canary_verdicts(stream)) == 2
    assert all(owner.pending == 0 for owner in stream.owners)


def test_a_redelivered_canary_is_counted_once(stream: Wired) -> None:
    pages = [page(0, text_of(1)), canary(1, [*text_of(1)[:-1], "other"])]
    found = checks("found")
    stream.take(pages)
    stream.take(pages[1:])
    assert len(canary_verdicts(stream)) == 1
    assert checks("found") == found + 1


def test_a_skipped_canary_has_a_verdict_but_is_not_counted(stream: Wired) -> None:
    before = checks("found"), checks("missed")
    assert stream.take([canary(0, ["short"])]) == []
    assert [verdict.verdict for verdict in canary_verdicts(stream)] == [Kind.SKIPPED]
    assert (checks("found"), checks("missed")) == before


def test_a_page_with_the_largest_timestamp_is_not_a_canary() -> None:
    late = page(0, text_of(1), timestamp=AFTER_ALL)
    assert document_id(late) == DocumentId(AFTER_ALL - 1, 0, 0)
    assert not document_id(late).is_canary


# At an owner


SOME = shingles(1, 90)
PLANTED = replace(document(9, SOME[:85], fingerprint=0b111), id=DocumentId(AFTER_ALL, 0, 9))


def saved(one: Desk, offset: int) -> None:
    for part in (one.owner.directory, one.owner.pending, one.owner.canaries):
        part.flush()
    one.store.save(offset)


def test_a_pending_canary_survives_a_restart(tmp_path: Path) -> None:
    with desk(tmp_path) as one:
        one.take(document(1, SOME))
        one.register(PLANTED)
        assert len(one.owner.canaries) == 1
        saved(one, 5)
    with desk(tmp_path) as one:
        one.answer(PLANTED, {0: 2})
        [settled] = one.out.canary_verdicts
        assert settled.match is not None
        assert (settled.document.id, settled.kind, settled.match.id.offset) == (PLANTED.id, Kind.DUPLICATE, 1)
        assert len(one.owner.canaries) == len(one.owner.pending) == 0
        saved(one, 6)
    with desk(tmp_path) as one:
        # A featurizer restarts and registers the canary again: it must not become pending a second time.
        one.register(PLANTED)
        assert len(one.owner.canaries) == len(one.owner.pending) == 0


def test_a_canary_does_not_count_as_a_document_or_as_the_oldest_pending_page(tmp_path: Path) -> None:
    with desk(tmp_path) as one:
        one.register(PLANTED)
        assert one.owner.pending.oldest_timestamp() is None
        one.register(document(1, SOME))
        assert one.owner.pending.oldest_timestamp() == 1
        assert one.owner.directory.documents == 1


def test_the_page_of_a_canary_is_read_as_it_was_written() -> None:
    copy = near_copy(text_of(4))
    record = PlainRecord("t.pages", 0, 1, 5, None, write_page(copy.page), ((CANARY_HEADER, b"x"),))
    assert read_page(record) == copy.page

"""Tests of the aggregator: from the messages of its inbox to verdicts, also after a restart."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from neardup.deployment.plan import plan_of
from neardup.errors import Corrupt, NotOurs, WrongKind, WrongPlan
from neardup.log import Output, PlainRecord
from neardup.matching.found_by import found_by_table
from neardup.messages import dead_letters
from neardup.messages.answers import Answers, write_answers
from neardup.messages.orders import Expire, Forget, orders
from neardup.messages.questions import Evidence, Question, write_evidence, write_questions
from neardup.messages.registrations import write_skipped
from neardup.messages.verdicts import read_verdict, write_verdict
from neardup.messages.wire import decode_any
from neardup.settings import Settings
from neardup.stream.aggregator.owner import FORGOTTEN
from neardup.types import BatchId, DocumentId, Kind, PageRef, Relation, SkippedPage, Verdict
from tests.support.documents import document, outputs_to, page, read_documents, records, registrations_of, text_of
from tests.support.messages import VERSIONS, decode, encode
from tests.support.wired import NOW_SECONDS, Wired, aggregator

SETTINGS = Settings(prefix="t", owners=2, tables=4, bands="3x4")
ONE = replace(SETTINGS, owners=1)
BASE = text_of(1)
NEAR = [*BASE[:-2], "something", "else"]
COPIES_AND_MORE: list[Sequence[str]] = [BASE, NEAR, BASE, text_of(2), text_of(3), [*text_of(3)[:-1], "x"], ["short"]]


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Wired]:
    wired = Wired(SETTINGS, tmp_path)
    yield wired
    wired.close()


def crawl() -> list[PlainRecord]:
    return [page(offset, words) for offset, words in enumerate(COPIES_AND_MORE)]


def by_document(verdicts: Sequence[Verdict]) -> dict[str, Verdict]:
    assert len({(each.document, each.revision) for each in verdicts}) == len(verdicts)
    return {each.document: each for each in sorted(verdicts, key=lambda each: each.revision)}


# Fields of a verdict


def test_a_unique_page(stream: Wired) -> None:
    assert stream.take([page(0, BASE, timestamp=1_000)]) == [
        Verdict(
            url="http://example/0", document="0:0", fetched_at=None, verdict=Kind.UNIQUE, revision=0,
            signature_version=stream.plan.signature_version, latency_ms=NOW_SECONDS * 1000 - 1_000,
        )
    ]  # fmt: skip


def test_a_near_duplicate_names_the_tables_that_found_it(stream: Wired) -> None:
    verdicts = by_document(stream.take([page(0, BASE), page(1, NEAR)]))
    assert verdicts["0:0"].verdict is Kind.UNIQUE
    near = verdicts["0:1"]
    assert (near.verdict, near.relation, near.revision) == (Kind.DUPLICATE, Relation.NEAR, 0)
    assert near.duplicate_of == near.first_of_group == PageRef("http://example/0", "0:0")
    assert near.found_by
    names = {f"simhash/{number}" for number in range(4)} | {f"bands/{number}" for number in range(3)}
    assert set(near.found_by) <= names
    assert near.hamming is not None
    assert 0 < near.hamming < 32
    assert near.resemblance is not None
    assert 0.65 <= near.resemblance < 1
    assert near.containment is not None
    assert near.signature_version == stream.plan.signature_version


def test_a_copy_was_found_by_its_fingerprint(stream: Wired) -> None:
    copy = by_document(stream.take([page(0, BASE), page(1, BASE)]))["0:1"]
    assert (copy.relation, copy.found_by, copy.hamming) == (Relation.IDENTICAL, ("fingerprint",), 0)
    assert (copy.resemblance, copy.containment) == (1.0, 1.0)


def test_a_duplicate_of_a_duplicate_names_the_first_of_its_group(stream: Wired) -> None:
    stream.take([page(0, BASE), page(1, NEAR)])
    [copy] = stream.take([page(2, NEAR)])
    assert copy.duplicate_of == PageRef("http://example/1", "0:1")
    assert copy.first_of_group == PageRef("http://example/0", "0:0")


def test_a_recrawl_is_marked(stream: Wired) -> None:
    verdicts = by_document(stream.take([page(0, BASE, url="u"), page(1, BASE, url="u"), page(2, BASE, url="v")]))
    assert [verdicts[name].same_url for name in ("0:0", "0:1", "0:2")] == [False, True, False]


def test_an_earlier_page_that_arrives_late_revises(stream: Wired) -> None:
    assert [each.verdict for each in stream.take([page(5, NEAR, timestamp=50)])] == [Kind.UNIQUE]
    verdicts = by_document(stream.take([page(6, BASE, timestamp=40)]))
    assert (verdicts["0:6"].verdict, verdicts["0:6"].revision) == (Kind.UNIQUE, 0)
    assert (verdicts["0:5"].verdict, verdicts["0:5"].revision) == (Kind.DUPLICATE, 1)
    assert verdicts["0:5"].duplicate_of == PageRef("http://example/6", "0:6")


def test_the_verdict_on_a_skipped_page_has_the_reason(stream: Wired) -> None:
    [skipped] = stream.take([page(0, ["short"], timestamp=1_000)])
    assert skipped == Verdict(
        url="http://example/0", document="0:0", fetched_at=None, verdict=Kind.SKIPPED, revision=0, reason="too short",
        signature_version=stream.plan.signature_version, latency_ms=NOW_SECONDS * 1000 - 1_000,
    )  # fmt: skip


def test_the_verdict_on_a_truncated_page_has_a_reason(tmp_path: Path) -> None:
    stream = Wired(replace(SETTINGS, page_tokens=60), tmp_path)
    [cut] = stream.take([page(0, BASE)])
    stream.close()
    assert (cut.verdict, cut.reason) == (Kind.UNIQUE, "cut: tokens")


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_verdicts_are_written_in_the_configured_form(tmp_path: Path, form: str) -> None:
    stream = Wired(replace(SETTINGS, verdict_format=form), tmp_path)
    verdicts = stream.take([page(0, BASE), page(1, NEAR), page(2, ["short"])])
    values = [record.value or b"" for record in stream.sent[stream.topics.verdicts, 0]]
    stream.close()
    read: Any = json.loads if form == "json" else msgpack.unpackb
    assert [read(value)["document"] for value in values] == [each.document for each in verdicts]
    assert [list(read(value)) for value in values] == [[field.name for field in fields(Verdict)]] * 3
    assert [write_verdict(read_verdict(value), form) for value in values] == values
    assert set(read(values[0])) == set(Verdict.__slots__)


def test_every_settled_document_is_archived_once(stream: Wired) -> None:
    stream.take(crawl()[3:])
    stream.take(crawl()[:3])
    given = [each for record in stream.sent[stream.topics.documents, 0] for each in read_documents(record.value)]
    assert sorted(each.document.id.offset for each in given) == [0, 1, 2, 3, 4, 5]


# Between owners


def test_any_cut_into_batches_ends_in_the_same_verdicts(tmp_path: Path) -> None:
    ends = []
    for number, cut in enumerate([[7], [1] * 7, [3, 4], [2, 1, 4]]):
        stream, pages = Wired(SETTINGS, tmp_path / str(number)), crawl()
        for count in cut:
            stream.take(pages[:count])
            del pages[:count]
        assert [owner.pending for owner in stream.owners] == [0, 0]
        stream.close()
        ends.append({name: each.verdict for name, each in by_document(stream.verdicts).items()})
    assert ends == [ends[0]] * len(ends)
    unique, duplicate = Kind.UNIQUE, Kind.DUPLICATE
    assert [ends[0][f"0:{offset}"] for offset in range(7)] == [
        unique, duplicate, duplicate, unique, unique, duplicate, Kind.SKIPPED,
    ]  # fmt: skip


def test_owners_exchange_questions_and_evidence(stream: Wired) -> None:
    stream.take([page(offset, [*BASE[:-1], f"end{offset}"]) for offset in range(12)])
    kinds = [
        decode_any(record.value, VERSIONS)[0] for owner in (0, 1) for record in stream.sent[stream.topics.inbox, owner]
    ]
    assert {"registrations", "answers", "questions", "evidence"} <= set(kinds)
    assert not stream.rejected
    assert [each.verdict for each in by_document(stream.verdicts).values()].count(Kind.UNIQUE) == 1


# Orders


def test_a_forgotten_url_makes_no_more_duplicates(stream: Wired) -> None:
    stream.take([page(0, BASE, url="u")])
    assert stream.send(orders(Forget("u"), stream.topics.inbox, 2)) == []
    [again] = stream.take([page(1, BASE, url="v")])
    assert again.verdict is Kind.UNIQUE


def test_old_documents_expire(stream: Wired) -> None:
    stream.take([page(0, BASE, timestamp=1_000), page(1, text_of(2), timestamp=2_000)])
    stream.send(orders(Expire(2_000), stream.topics.inbox, 2))
    verdicts = by_document(stream.take([page(2, BASE, timestamp=3_000), page(3, text_of(2), timestamp=3_000)]))
    assert [verdicts["0:2"].verdict, verdicts["0:3"].verdict] == [Kind.UNIQUE, Kind.DUPLICATE]


def test_a_pending_page_that_is_forgotten_gets_a_verdict(tmp_path: Path) -> None:
    waits = registration(document(0, 1, url="u", timestamp=1_000))
    stage, _ = aggregator(ONE, 0, tmp_path)
    stage.process(records([waits]))
    assert stage.pending == 1
    [order] = orders(Forget("u"), "t.inbox", 1)
    [verdict] = verdicts_of(outputs_to(stage.process(records([order.value], first=1)), "t.verdicts"))
    stage.close()
    assert (verdict.document, verdict.verdict, verdict.reason) == ("0:0", Kind.SKIPPED, FORGOTTEN)
    assert stage.pending == 0


# Invalid messages


def registration(*some: Any, settings: Settings = ONE) -> bytes:
    [message] = registrations_of(some, plan=plan_of(settings).digest)
    return message


def verdicts_of(outputs: Sequence[Output]) -> list[Verdict]:
    return [read_verdict(output.value or b"") for output in outputs]


def test_foreign_messages_are_rejected_and_the_others_are_processed(tmp_path: Path) -> None:
    [skipped] = write_skipped([SkippedPage(DocumentId(1, 0, 9), "u", None, "too short")])
    ours = {"plan": plan_of(ONE).digest}
    inbox = records([
        b"<html>", None, encode("probes", {}), encode("documents", {}), registration(document(0, 1))[:-1],
        encode("registrations", ours), encode("control", {"drop": "all"}),
        encode("evidence", ours), encode("questions", ours), encode("answers", ours), skipped,
    ])  # fmt: skip
    stage, _ = aggregator(ONE, 0, tmp_path)
    waves = stage.process(inbox)
    assert stage.checkpoint() == len(inbox)
    stage.close()
    assert [type(rejection.error) for rejection in waves.rejected] == [
        NotOurs, NotOurs, WrongKind, WrongKind, Corrupt, Corrupt, Corrupt, Corrupt, Corrupt, Corrupt,
    ]  # fmt: skip
    assert [rejection.record for rejection in waves.rejected] == inbox[:-1]
    assert [each.document for each in verdicts_of(outputs_to(waves, "t.verdicts"))] == ["0:9"]


NOTHING = np.empty(0, np.uint64)
ASKING = document(0, 1)
MESSAGES: dict[str, Callable[[str], bytes]] = {
    "registrations": lambda plan: registrations_of([ASKING], plan=plan)[0],
    "answers": lambda plan: write_answers(Answers(0, (BatchId(0, 0, 0),), NOTHING, NOTHING), plan),
    "questions": lambda plan: next(write_questions([Question(ASKING, {7: found_by_table(0)})], 0, plan)),
    "evidence": lambda plan: next(write_evidence([Evidence(ASKING.id, 0, (7,), None)], plan)),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_messages_of_another_plan_are_rejected_and_both_digests_are_named(tmp_path: Path, kind: str) -> None:
    ours, other = plan_of(ONE).digest, plan_of(replace(ONE, tables=10)).digest
    stage, _ = aggregator(ONE, 0, tmp_path)
    waves = stage.process(records([MESSAGES[kind](other), MESSAGES[kind](ours)]))
    stage.close()
    [rejection] = waves.rejected
    assert rejection.record.offset == 0
    assert isinstance(rejection.error, WrongPlan)
    assert ours in str(rejection.error)
    assert other in str(rejection.error)


def changed(kind: str, **changes: Any) -> bytes:
    """Return a valid message of a kind with these columns replaced."""
    return encode(kind, decode(MESSAGES[kind](plan_of(ONE).digest), kind) | changes)


def sketched(kind: str, *words: int) -> bytes:
    """Return a valid message of a kind with the sketch of its only document replaced."""
    return changed(kind, sketch=np.array(words, np.uint64), words=np.array([len(words)], np.int64))


CORRUPT = {
    "answers of a partition outside the plan": changed("answers", partition=plan_of(ONE).partitions),
    "answers of a partition below zero": changed("answers", partition=-1),
    "answers of a partition that is not an integer": changed("answers", partition=0.0),
    "answers of a partition that is an array": changed("answers", partition=np.zeros(2)),
    "a question about a document with a negative number": changed("questions", number=np.array([-1], np.int64)),
    "an infinite asker": changed("questions", asker=float("inf")),
    "an asker that is not an integer": changed("questions", asker=0.0),
    "an asker that is not an owner": changed("questions", asker=ONE.owners),
    "an asker below zero": changed("questions", asker=-1),
    "a candidate that is not an integer": changed("questions", candidate=np.array([7.0])),
    "a question without a sketch": sketched("questions"),
    "a question with a sketch without values": sketched("questions", 0),
    "a question with a sketch of one value": sketched("questions", 1 << 8, 5),
    "a skipped page with a number as its url": encode("skipped", {"pages": [[1, 0, 9, 5, None, "empty"]]}),
    "evidence about an invalid fingerprint": changed("evidence", fingerprint=["x"]),
    "evidence with an invalid match": changed("evidence", match=["match"]),
    "a batch of large numbers": changed("registrations", batch=[0, 0, 2**63]),
    "no partition that will answer": changed("registrations", expected=np.empty(0, np.int64)),
    "a partition outside the plan that will answer": changed(
        "registrations", expected=np.array([0, plan_of(ONE).partitions], np.int64)
    ),
    "a partition below zero that will answer": changed("registrations", expected=np.array([-1, 0], np.int64)),
    "more checksums than documents": changed("registrations", checksums=np.zeros((2, 48), np.uint8)),
    "no sketch": sketched("registrations"),
    "a sketch shorter than its header requires": sketched("registrations", *ASKING.sketch[:-1].tolist()),
    "a sketch without values": sketched("registrations", 0),
    "a sketch of one value": sketched("registrations", 1 << 8, 5),
}
WRONG_PLAN = {
    "no plan": changed("registrations", plan=None),
    "a plan that is an array": changed("answers", plan=np.zeros(2)),
    "a plan in a list": changed("questions", plan=[plan_of(ONE).digest]),
}
POISON = [
    pytest.param(poison, reason, id=name)
    for reason, some in (("corrupt", CORRUPT), ("wrong-plan", WRONG_PLAN))
    for name, poison in some.items()
]


@pytest.mark.parametrize(("poison", "reason"), POISON)
def test_a_malformed_message_becomes_a_dead_letter_and_the_others_are_processed(
    tmp_path: Path, poison: bytes, reason: str
) -> None:
    plan = plan_of(ONE).digest
    stage, _ = aggregator(ONE, 0, tmp_path)
    waves = stage.process(records([poison, MESSAGES["registrations"](plan), poison, MESSAGES["answers"](plan)]))
    assert stage.checkpoint() == 4
    stage.close()
    letters = [dead_letters.decode(each.value) for each in dead_letters.dead_letters(waves.rejected, "aggregator", "d")]
    assert [(each.offset, each.reason, each.value) for each in letters] == [
        (0, reason, poison),
        (2, reason, poison),
    ]
    assert all(each.detail.startswith("expected ") for each in letters)
    [verdict] = verdicts_of(outputs_to(waves, "t.verdicts"))
    assert (verdict.document, verdict.verdict) == ("0:0", Kind.UNIQUE)


# Restarts


@pytest.mark.parametrize("saved", range(0, 12, 2))
def test_after_a_restart_the_outputs_are_repeated_except_for_latency(tmp_path: Path, saved: int) -> None:
    stream = Wired(SETTINGS, tmp_path / "whole")
    for each in crawl():
        stream.take([each])
    stream.close()
    for number in (0, 1):
        inbox = stream.sent[stream.topics.inbox, number]
        assert len(inbox) > saved
        first, start = aggregator(SETTINGS, number, tmp_path / "cut")
        assert start == 0
        if saved:
            first.process(inbox[:saved])
            assert first.checkpoint() == saved
        expected = first.process(inbox[saved:])
        first.close()
        second, start = aggregator(SETTINGS, number, tmp_path / "cut", now=NOW_SECONDS + 7)
        assert start == saved
        repeated = second.process(inbox[start:])
        second.close()
        assert without_latency(repeated.waves[0]) == without_latency(expected.waves[0])
        assert [each.latency_ms for each in verdicts_of(outputs_to(repeated, "t.verdicts"))] == [
            (each.latency_ms or 0) + 7_000 for each in verdicts_of(outputs_to(expected, "t.verdicts"))
        ]


def test_a_frozen_state_is_saved_unchanged_while_the_owner_continues(tmp_path: Path) -> None:
    stream = Wired(SETTINGS, tmp_path / "whole")
    for each in crawl():
        stream.take([each])
    stream.close()
    inbox = stream.sent[stream.topics.inbox, 0]
    for frozen in range(1, len(inbox)):
        directory = tmp_path / str(frozen)
        first, _ = aggregator(SETTINGS, 0, directory)
        first.process(inbox[:frozen])
        save = first.freeze()
        expected = first.process(inbox[frozen:])
        assert save() == frozen
        first.close()
        second, start = aggregator(SETTINGS, 0, directory)
        assert start == frozen
        assert without_latency(second.process(inbox[start:]).waves[0]) == without_latency(expected.waves[0])
        second.close()


def test_an_owner_with_much_to_save_is_full_until_it_is_frozen(tmp_path: Path) -> None:
    settings = replace(ONE, checkpoint_bytes=1000)
    stage, _ = aggregator(settings, 0, tmp_path)
    assert not stage.is_full
    stage.process(records([registration(*(document(offset, offset + 1) for offset in range(40)), settings=settings)]))
    assert stage.is_full
    save = stage.freeze()
    assert not stage.is_full
    save()
    stage.close()


def without_latency(outputs: Sequence[Output]) -> list[Any]:
    """Return the outputs without the latencies."""
    return [
        replace(read_verdict(output.value), latency_ms=None)
        if output.topic == "t.verdicts" and output.value is not None
        else output
        for output in outputs
    ]

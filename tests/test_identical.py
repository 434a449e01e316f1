"""Pages with the same bytes, from pages to verdicts, without any log: featurizer and aggregator wired by hand."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.aggregator import Aggregator
from neardup.errors import InvalidPage, NotOurs
from neardup.featurizer import Featurizer
from neardup.log import Output
from neardup.log.memory import MemoryRecord
from neardup.types import DocumentId, Kind, PageRef, Relation, Verdict
from neardup.verdict import read_verdict

PAGES, INBOX, VERDICTS = "t.pages", "t.inbox", "t.verdicts"
NOW_SECONDS = 2000.0

CONTENTS = ["", "a", "b", "<p>c</p>"]
BAD_VALUES = [None, b"", b"{", b'{"url": "u"}', b"\x81\xa3url"]


def page(partition: int, offset: int, timestamp: int, content: str, form: str = "json", url: str = "") -> MemoryRecord:
    url = url or f"http://{partition}/{offset}"
    fields = {"url": url, "html": content}
    key, value = None, json.dumps(fields).encode()
    if form == "msgpack":
        value = msgpack.packb(fields)
    elif form == "text":
        value = msgpack.packb({"url": url, "text": content})
    elif form == "raw" and content:
        key, value = url.encode(), content.encode()
    return MemoryRecord(PAGES, partition, offset, timestamp, key, value, ())


def inbox_record(offset: int, value: bytes | None) -> MemoryRecord:
    return MemoryRecord(INBOX, 0, offset, 5, None, value, ())


def place(record: MemoryRecord) -> DocumentId:
    return DocumentId(record.timestamp, record.partition, record.offset)


@contextmanager
def opened(directory: Path, owner: int = 0, form: str = "json") -> Iterator[tuple[Aggregator, int]]:
    stage = Aggregator(partition=f"{INBOX}-{owner}", verdicts=VERDICTS, form=form, clock=lambda: NOW_SECONDS)
    start = stage.open(directory / f"owner-{owner}")
    assert start is not None
    try:
        yield stage, start
    finally:
        stage.close()


def verdicts_of(outputs: list[Output]) -> list[Verdict]:
    assert {output.topic for output in outputs} <= {VERDICTS}
    verdicts = []
    for output in outputs:
        assert output.value is not None
        verdict = read_verdict(output.value)
        assert output.key == verdict.url.encode()
        verdicts.append(verdict)
    return verdicts


def featurized(records: list[MemoryRecord], owners: int = 1) -> tuple[list[Output], list[MemoryRecord]]:
    """What the featurizer sends for a batch, and what it rejects."""
    stage = Featurizer(inbox=INBOX, owners=owners)
    assert stage.open(Path("nowhere")) is None
    result = stage.process(records)
    assert stage.checkpoint() == records[-1].offset + 1
    rejected = []
    for record, error in result.rejected:
        assert isinstance(error, InvalidPage)
        assert isinstance(record, MemoryRecord)
        rejected.append(record)
    return [output for wave in result.waves for output in wave], rejected


def told(directory: Path, batches: list[list[MemoryRecord]]) -> list[Verdict]:
    """Verdicts on pages that arrive in these batches, at one owner that never restarts."""
    outputs: list[Output] = []
    with opened(directory) as (stage, _):
        for offset, batch in enumerate(batches):
            [message] = featurized(batch)[0]
            result = stage.process([inbox_record(offset, message.value)])
            outputs += [output for wave in result.waves for output in wave]
    return verdicts_of(outputs)


# By example


def test_the_first_page_is_unique_and_its_copy_a_duplicate(tmp_path: Path) -> None:
    first, copy = told(tmp_path, [[page(0, 0, 10, "a"), page(0, 1, 20, "a", "msgpack")]])
    assert first == Verdict(
        url="http://0/0", document="0:0", fetched_at=None, verdict=Kind.UNIQUE, revision=0,
        signature_version="bytes-blake2b-128", latency_ms=NOW_SECONDS * 1000 - 10,
    )  # fmt: skip
    reference = PageRef("http://0/0", "0:0")
    assert copy == replace(
        first, url="http://0/1", document="0:1", verdict=Kind.DUPLICATE, duplicate_of=reference,
        relation=Relation.IDENTICAL, first_of_group=reference, latency_ms=NOW_SECONDS * 1000 - 20,
    )  # fmt: skip


def test_a_late_page_that_stands_earlier_takes_over_and_the_former_first_is_revised(tmp_path: Path) -> None:
    said = told(tmp_path, [[page(1, 0, 20, "a")], [page(0, 0, 10, "a")]])
    assert [(each.document, each.revision, each.verdict) for each in said] == [
        ("1:0", 0, Kind.UNIQUE),
        ("0:0", 0, Kind.UNIQUE),
        ("1:0", 1, Kind.DUPLICATE),
    ]
    assert said[2].duplicate_of == PageRef("http://0/0", "0:0")


def test_at_the_same_time_partition_and_offset_decide(tmp_path: Path) -> None:
    said = told(tmp_path, [[page(1, 0, 10, "a"), page(0, 7, 10, "a"), page(0, 6, 10, "a")]])
    last = {each.document: each.verdict for each in said}
    assert last == {"0:6": Kind.UNIQUE, "0:7": Kind.DUPLICATE, "1:0": Kind.DUPLICATE}


def test_a_page_fetched_again_unchanged_is_a_duplicate_at_the_same_url(tmp_path: Path) -> None:
    said = told(tmp_path, [[page(0, 0, 1, "a", url="u"), page(0, 1, 2, "a", url="u"), page(0, 2, 3, "a", url="v")]])
    assert [each.same_url for each in said] == [False, True, False]


def test_a_page_registered_again_is_not_told_again(tmp_path: Path) -> None:
    batch = [page(0, 0, 10, "a"), page(0, 1, 20, "a")]
    assert len(told(tmp_path, [batch, batch])) == 2


def test_a_message_that_is_not_ours_is_rejected_and_the_rest_goes_on(tmp_path: Path) -> None:
    [message] = featurized([page(0, 0, 10, "a")])[0]
    records = [inbox_record(0, b"<html>"), inbox_record(1, message.value), inbox_record(2, None)]
    with opened(tmp_path) as (stage, _):
        result = stage.process(records)
        assert stage.checkpoint() == 3
    assert [(rejection.record, type(rejection.error)) for rejection in result.rejected] == [
        (records[0], NotOurs),
        (records[2], NotOurs),
    ]
    assert [each.document for each in verdicts_of(list(result.waves[0]))] == ["0:0"]


def test_an_owner_opens_where_it_last_saved(tmp_path: Path) -> None:
    [message] = featurized([page(0, 0, 10, "a")])[0]
    with opened(tmp_path) as (stage, start):
        assert start == 0
        stage.process([inbox_record(0, message.value)])
        stage.checkpoint()
        stage.process([inbox_record(1, message.value)])
    with opened(tmp_path) as (_, start):
        assert start == 1


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_verdicts_are_written_in_the_form_that_was_set(tmp_path: Path, form: str) -> None:
    [message] = featurized([page(0, 0, 10, "a")])[0]
    with opened(tmp_path, form=form) as (stage, _):
        [[output]] = stage.process([inbox_record(0, message.value)]).waves
    assert output.value is not None
    assert output.value.startswith(b"{") == (form == "json")


def test_equal_pages_have_the_same_owner() -> None:
    records = [page(0, offset, offset, content) for offset, content in enumerate("abcdefgh" * 2)]
    outputs = [featurized([record], owners=5)[0][0] for record in records]
    partitions = [output.partition for output in outputs]
    assert partitions[:8] == partitions[8:]
    assert len(set(partitions)) > 1


# By property


@st.composite
def crawls(draw: st.DrawFn) -> list[MemoryRecord]:
    """Pages of up to three partitions, many alike, some bad, in the order in which they are delivered."""
    records = []
    for partition in range(draw(st.integers(1, 3))):
        for offset in range(draw(st.integers(0, 6))):
            timestamp = draw(st.integers(-1, 8))  # Kafka says -1 when it has no timestamp
            if draw(st.integers(0, 9)) == 0:
                value = draw(st.sampled_from(BAD_VALUES))
                records.append(MemoryRecord(PAGES, partition, offset, timestamp, None, value, ()))
            else:
                form = draw(st.sampled_from(["json", "msgpack", "text", "raw"]))
                records.append(page(partition, offset, timestamp, draw(st.sampled_from(CONTENTS)), form))
    return draw(st.permutations(records))


def batches(data: st.DataObject, records: list[MemoryRecord]) -> Iterator[list[MemoryRecord]]:
    start = 0
    while start < len(records):
        size = data.draw(st.integers(1, 4))
        yield records[start : start + size]
        start += size


def content_of(record: MemoryRecord) -> bytes | None:
    """The oracle's own reading of the pages made above; None for a bad one."""
    if record.value in BAD_VALUES:
        return None
    assert record.value is not None
    if record.key is not None:
        return record.value
    fields = json.loads(record.value) if record.value.startswith(b"{") else msgpack.unpackb(record.value)
    content: str = fields["html"] if "html" in fields else fields["text"]
    return content.encode()


def naive_firsts(records: list[MemoryRecord]) -> dict[str, str]:
    """Of every good page the first page, in the order of all pages, with the same bytes."""
    firsts: dict[bytes, str] = {}
    answer = {}
    for record in sorted(records, key=place):
        content = content_of(record)
        if content is not None:
            name = f"{record.partition}:{record.offset}"
            answer[name] = firsts.setdefault(content, name)
    return answer


def owner_run(data: st.DataObject, directory: Path, owner: int, inbox: list[MemoryRecord]) -> list[Output]:
    """Drive one owner to the end of its inbox, through checkpoints and crashes."""
    outputs: list[Output] = []
    crashes = data.draw(st.integers(0, 2))
    while True:
        with opened(directory, owner) as (stage, position):
            crash_at = data.draw(st.integers(position, len(inbox))) if crashes else len(inbox)
            while position < crash_at:
                size = data.draw(st.integers(1, 3))
                batch = inbox[position : min(position + size, crash_at)]
                result = stage.process(batch)
                assert not result.rejected
                outputs += [output for wave in result.waves for output in wave]
                position += len(batch)
                if data.draw(st.booleans()):
                    assert stage.checkpoint() == position
        if not crashes:
            return outputs
        crashes -= 1


@settings(max_examples=40)
@given(records=crawls(), owners=st.integers(1, 3), data=st.data())
def test_the_last_verdict_of_every_page_is_that_of_a_naive_oracle(
    tmp_path_factory: pytest.TempPathFactory, records: list[MemoryRecord], owners: int, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("owners")
    inboxes: dict[int, list[MemoryRecord]] = {owner: [] for owner in range(owners)}
    rejected: list[MemoryRecord] = []
    delivered = list(batches(data, records))
    repeats = [batch for batch in delivered if data.draw(st.integers(0, 3)) == 0]
    for number, batch in enumerate(delivered + repeats):
        outputs, bad = featurized(batch, owners)
        if number < len(delivered):
            rejected += bad
        for output in outputs:
            assert output.topic == INBOX
            assert output.partition is not None
            inbox = inboxes[output.partition]
            inbox.append(inbox_record(len(inbox), output.value))

    said: list[Verdict] = []
    for owner, inbox in inboxes.items():
        said += verdicts_of(owner_run(data, directory, owner, inbox))

    # Bad pages come back, each once, and only those.
    assert sorted(rejected) == sorted(record for record in records if content_of(record) is None)

    # A revision says the same whenever it is repeated, and the highest is also the one that was said last.
    by_revision: dict[tuple[str, int], Verdict] = {}
    last: dict[str, Verdict] = {}
    for verdict in said:
        assert by_revision.setdefault((verdict.document, verdict.revision), verdict) == verdict
        last[verdict.document] = verdict
    for document, revision in by_revision:
        assert last[document].revision >= revision

    order = {f"{record.partition}:{record.offset}": place(record) for record in records}
    contents = {f"{record.partition}:{record.offset}": content_of(record) for record in records}
    firsts = naive_firsts(records)
    assert last.keys() == firsts.keys()
    for document, verdict in last.items():
        assert verdict.verdict == (Kind.UNIQUE if firsts[document] == document else Kind.DUPLICATE)
    for verdict in said:
        if verdict.verdict is Kind.UNIQUE:
            assert verdict.duplicate_of is None
            assert verdict.relation is None
        else:
            assert verdict.relation is Relation.IDENTICAL
            assert verdict.duplicate_of is not None
            assert order[verdict.duplicate_of.document] < order[verdict.document]
            assert contents[verdict.duplicate_of.document] == contents[verdict.document]


@settings(max_examples=20)
@given(records=crawls())
def test_delivered_in_order_every_duplicate_points_at_the_very_first(
    tmp_path_factory: pytest.TempPathFactory, records: list[MemoryRecord]
) -> None:
    good = [record for record in sorted(records, key=place) if content_of(record) is not None]
    said = told(tmp_path_factory.mktemp("owner"), [[record] for record in good])
    firsts = naive_firsts(good)
    assert {each.document: each.revision for each in said} == dict.fromkeys(firsts, 0)
    for verdict in said:
        target = verdict.document if verdict.duplicate_of is None else verdict.duplicate_of.document
        assert target == firsts[verdict.document]
        assert verdict.first_of_group == verdict.duplicate_of

"""Tests of the shard: its answers against all pairs, for any cut of the log, and its snapshots."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from neardup.deployment.plan import plan_of
from neardup.errors import NotOurs, StateError, WrongPlan, WrongState
from neardup.index.plan.routing import owner_of
from neardup.index.psm.flip_model import simulated_model
from neardup.index.psm.search import Psm
from neardup.log import PlainRecord
from neardup.messages.answers import Answers, read_answers
from neardup.messages.probes import Probes, write_probes
from neardup.messages.registrations import read_registrations
from neardup.messages.topics import Topics
from neardup.runtime.stage import Waves
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.stream.featurizer.page_pool import PagePool
from neardup.stream.featurizer.stage import Featurizer
from neardup.stream.shard import stage as shard_module
from neardup.stream.shard.stage import Shard
from neardup.types import BatchId
from tests.support.documents import body_of, outputs_to, page, records, text_of
from tests.support.fingerprints import fingerprints, words
from tests.support.naive import NaiveSlice, distance

OWNERS = 3
EXACT = Settings(prefix="t", owners=OWNERS, tables=4, bands="none", codec="elias-fano")
BANDED = Settings(prefix="t", owners=OWNERS, tables=4, bands="3x4")
PROBABILISTIC = Settings(
    prefix="t", owners=OWNERS, search="probabilistic", header_bits=8, hamming=2, flips=36, bands="none"
)
MODEL = simulated_model()
HOUR = 3_600_000
MOST_PARTITIONS = 100
Pair = tuple[int, int]

cuts = st.lists(st.integers(1, 4), max_size=30)


@dataclass(frozen=True)
class Received:
    """Matches and completed batches that the owners received."""

    pairs: set[Pair]
    done: list[tuple[int, BatchId]]

    def __add__(self, other: "Received") -> "Received":
        return Received(self.pairs | other.pairs, self.done + other.done)


def made(settings: Settings, partition: int = 0) -> Shard:
    psm = None
    if settings.search == "probabilistic":
        psm = Psm(MODEL, settings.header_bits, settings.flips, settings.hamming, settings.most_matches)
    return Shard(settings=settings, plan=plan_of(settings), partition=partition, psm=psm)


def opened(directory: Path, settings: Settings, partition: int = 0) -> tuple[Shard, int | None]:
    stage = made(settings, partition)
    return stage, stage.open(directory)


def probe(number: int, some: Sequence[int], settings: Settings = EXACT, keys: Sequence[int] | None = None) -> bytes:
    """Return a message that probes for these fingerprints as batch `number`."""
    levels = None
    if settings.search == "probabilistic":
        levels = MODEL.levels_of(np.random.default_rng(number).laplace(size=(len(some), 64)))
    batch = BatchId(0, number, number)
    probes = Probes(batch, words(list(some)), None if keys is None else words(list(keys)), levels)
    return write_probes(probes, plan_of(settings).digest)


def answers_of(waves: Waves) -> list[tuple[int, Answers]]:
    got = []
    for output in outputs_to(waves, "t.inbox"):
        assert output.partition is not None
        got.append((output.partition, read_answers(body_of(output.value, "answers"), MOST_PARTITIONS)))
    return got


def received(waves: Waves) -> Received:
    assert not waves.rejected
    pairs: set[Pair] = set()
    done = []
    for owner, answers in answers_of(waves):
        for query, found in zip(answers.query.tolist(), answers.found.tolist(), strict=True):
            assert owner_of(query, OWNERS) == owner
            pairs.add((query, found))
        done += [(owner, batch) for batch in answers.batches]
    return Received(pairs, done)


def fed(stage: Shard, log: Sequence[PlainRecord], cut: Sequence[int] = ()) -> Received:
    """Process the log in batches of these lengths, and the rest as one batch. Return what the owners receive."""
    result, start = Received(set(), []), 0
    for length in (*cut, len(log)):
        if log[start : start + length]:
            result += received(stage.process(log[start : start + length]))
        start += length
    return result


def owners_of_batches(groups: Sequence[Sequence[int]]) -> list[tuple[int, BatchId]]:
    return sorted(
        (owner, BatchId(0, number, number))
        for number, some in enumerate(groups)
        for owner in {owner_of(each, OWNERS) for each in some}
    )


# Answers against all pairs


@examples(max_examples=40)
@given(
    groups=st.lists(fingerprints(8), min_size=1, max_size=8), cut=cuts, ttl=st.sampled_from([0.0, 1.0]), data=st.data()
)
def test_a_permuted_table_finds_all_earlier_fingerprints_for_any_cut_of_the_log(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[list[int]],
    cut: list[int],
    ttl: float,
    data: st.DataObject,
) -> None:
    settings = Settings(prefix="t", owners=OWNERS, tables=4, bands="none", ttl_hours=ttl)
    number = data.draw(st.integers(0, 3))
    times = sorted(data.draw(st.lists(st.integers(0, 5 * HOUR), min_size=len(groups), max_size=len(groups))))
    table = plan_of(settings).tables[number]
    twin = NaiveSlice(table.leading, ttl=ttl * HOUR)
    expected: set[Pair] = set()
    for some, time in zip(groups, times, strict=True):
        keys = table.keys_of(words(some)).tolist()
        for query, key in zip(some, keys, strict=True):
            near = twin.probe_and_insert(key, 3, time)
            others = table.fingerprints_of(words([found for _, found in near if found != key])).tolist()
            expected |= {(query, other) for other in others}
    log = [
        PlainRecord("t.probes", number, offset, time, None, probe(offset, some, settings), ())
        for offset, (some, time) in enumerate(zip(groups, times, strict=True))
    ]
    stage, start = opened(tmp_path_factory.mktemp("shard"), settings, number)
    assert start == 0
    result = fed(stage, log, cut)
    assert result.pairs == expected
    assert sorted(result.done) == owners_of_batches(groups)


@examples(max_examples=40)
@given(
    groups=st.lists(
        st.lists(st.tuples(st.integers(0, 40), st.sampled_from([1, 2, 2**64 - 1])), min_size=1, max_size=8), min_size=1
    ),
    cut=cuts,
)
def test_a_bucket_table_finds_all_earlier_fingerprints_for_any_cut_of_the_log(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[Pair]], cut: list[int]
) -> None:
    expected: set[Pair] = set()
    buckets: dict[int, set[int]] = {}
    for fingerprint, key in (pair for some in groups for pair in some):
        bucket = buckets.setdefault(key, set())
        expected |= {(fingerprint, other) for other in bucket - {fingerprint}}
        bucket.add(fingerprint)
    log = records(
        probe(number, [fingerprint for fingerprint, _ in some], BANDED, [key for _, key in some])
        for number, some in enumerate(groups)
    )
    first_band = len(plan_of(BANDED).tables)
    result = fed(opened(tmp_path_factory.mktemp("shard"), BANDED, first_band)[0], log, cut)
    assert result.pairs == expected
    assert sorted(result.done) == owners_of_batches([[fingerprint for fingerprint, _ in some] for some in groups])


@examples(max_examples=40)
@given(groups=st.lists(fingerprints(8), min_size=1, max_size=8), cut=cuts)
def test_with_all_flips_the_probabilistic_search_finds_every_pair(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[int]], cut: list[int]
) -> None:
    every = [each for some in groups for each in some]
    near = {(x, y) for x in every for y in every if x != y and distance(x, y) <= PROBABILISTIC.hamming}
    before = {(x, y) for number, x in enumerate(every) for y in every[:number] if (x, y) in near}
    log = records(probe(number, some, PROBABILISTIC) for number, some in enumerate(groups))
    result = fed(opened(tmp_path_factory.mktemp("shard"), PROBABILISTIC)[0], log, cut)
    # Fingerprints that are probed together find each other in both directions, so there may be extra near pairs.
    assert before <= result.pairs <= near
    assert sorted(result.done) == owners_of_batches(groups)


# Recipients


def test_batches_are_completed_exactly_where_registrations_expect_it(tmp_path: Path) -> None:
    settings = Settings(prefix="t", owners=OWNERS, tables=4, slice_bits=2, bands="3x4", band_slice_bits=1)
    plan, topics = plan_of(settings), Topics.under("t")
    options = SignatureOptions.of(settings)
    pool = PagePool(Signatures(options), None)
    featurizer = Featurizer(batch_featurizer=pool, plan=plan, topics=topics, owners=OWNERS)
    pages = [page(offset, text_of(offset)) for offset in range(24)]
    expected, done = set(), set()
    for some in (pages[:1], pages[1:5], pages[5:]):
        waves = featurizer.process(some)
        for output in outputs_to(waves, topics.inbox):
            body = body_of(output.value, "registrations")
            registrations = read_registrations(body, plan.partitions, options.m)
            expected |= {(output.partition, registrations.batch, partition) for partition in registrations.expected}
        for output in outputs_to(waves, topics.probes):
            assert output.partition is not None
            stage, _ = opened(tmp_path / f"{some[0].offset}-{output.partition}", settings, output.partition)
            result = received(stage.process(records([output.value])))
            assert len(result.done) == len(set(result.done))
            done |= {(owner, batch, output.partition) for owner, batch in result.done}
    assert done == expected
    assert {partition for _, _, partition in done} == set(range(plan.partitions))


def test_a_batch_is_completed_only_with_its_last_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "_PAIRS", 2)
    settings = Settings(prefix="t", owners=1, tables=4, bands="none")
    stage, _ = opened(tmp_path, settings)
    messages = answers_of(stage.process(records([probe(0, [0, 1, 2, 4], settings), probe(0, [0], settings)])))
    assert len(messages) > 2
    assert all(answers.query.size <= 2 for _, answers in messages)
    assert [answers.batches for _, answers in messages] == [()] * (len(messages) - 1) + [(BatchId(0, 0, 0),)]
    assert {answers.partition for _, answers in messages} == {0}


def test_many_batches_are_completed_in_several_messages_after_their_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "_PAIRS", 2)
    monkeypatch.setattr(shard_module, "_BATCHES", 2)
    settings = Settings(prefix="t", owners=1, tables=4, bands="none")
    stage, _ = opened(tmp_path, settings)
    messages = answers_of(stage.process(records([probe(number, [0, 1, 2, 4], settings) for number in range(5)])))
    done = [answers.batches for _, answers in messages]
    first = next(number for number, some in enumerate(done) if some)
    assert first > 0
    assert [len(some) for some in done[first:]] == [2, 2, 1]
    assert [batch for some in done for batch in some] == [BatchId(0, number, number) for number in range(5)]
    assert not any(answers.query.size for _, answers in messages[first + 1 :])


def test_probes_of_another_plan_are_rejected_and_the_others_are_answered(tmp_path: Path) -> None:
    stage, _ = opened(tmp_path, EXACT)
    log = records([probe(0, [1]), probe(1, [2], BANDED), b"<html>", probe(3, [3])])
    waves = stage.process(log)
    assert [(rejection.record.offset, type(rejection.error)) for rejection in waves.rejected] == [
        (1, WrongPlan),
        (2, NotOurs),
    ]
    assert plan_of(EXACT).digest in str(waves.rejected[0].error)
    assert plan_of(BANDED).digest in str(waves.rejected[0].error)
    assert {batch for _, answers in answers_of(waves) for batch in answers.batches} == {
        BatchId(0, 0, 0),
        BatchId(0, 3, 3),
    }
    assert received(Waves(waves.waves)).pairs == {(3, 1)}
    assert stage.checkpoint() == 4


# Snapshots


@pytest.mark.parametrize("settings", [EXACT, BANDED, PROBABILISTIC], ids=["exact", "bands", "probabilistic"])
def test_a_reopened_shard_continues_after_its_snapshot(tmp_path: Path, settings: Settings) -> None:
    partition = len(plan_of(settings).tables) if settings is BANDED else 0
    keys = [5] if settings is BANDED else None
    log = records(probe(number, [1 << number], settings, keys) for number in range(6))
    stage, _ = opened(tmp_path, settings, partition)
    fed(stage, log[:3])
    assert stage.checkpoint() == 3
    rest = fed(stage, log[3:])
    again, offset = opened(tmp_path, settings, partition)
    assert offset == 3
    assert fed(again, log[3:]) == rest
    assert again.checkpoint() == 6


def test_replayed_probes_are_answered_as_before(tmp_path: Path) -> None:
    log = records([probe(0, [1, 2]), probe(1, [3])])
    stage, _ = opened(tmp_path, EXACT)
    first, second = fed(stage, log), fed(stage, log)
    assert first.done == second.done
    assert first.pairs <= second.pairs


def test_a_large_shard_is_saved_only_when_an_eighth_of_it_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "_SMALL", 0)
    stage, _ = opened(tmp_path, EXACT)
    stage.process(records([probe(0, range(0, 160, 10))]))
    assert stage.checkpoint() == 1
    stage.process(records([probe(1, [1001])], first=1))
    assert stage.checkpoint() == 1
    stage.process(records([probe(2, [2001, 3001])], first=2))
    assert stage.checkpoint() == 3
    assert opened(tmp_path, EXACT)[1] == 3


@pytest.mark.parametrize("cut", ["half", "empty", "altered"])
def test_a_truncated_snapshot_is_a_clear_error(tmp_path: Path, cut: str) -> None:
    stage, _ = opened(tmp_path, EXACT)
    stage.process(records([probe(0, [1, 2, 3])]))
    stage.checkpoint()
    path = tmp_path / "slice"
    whole = path.read_bytes()
    altered = whole[:-1] + bytes([whole[-1] ^ 1])
    path.write_bytes({"half": whole[: len(whole) // 2], "empty": b"", "altered": altered}[cut])
    with pytest.raises(StateError) as raised:
        opened(tmp_path, EXACT)
    assert str(path) in str(raised.value)
    assert "expected" in str(raised.value)


def test_the_snapshot_of_another_partition_or_plan_is_refused(tmp_path: Path) -> None:
    stage, _ = opened(tmp_path, EXACT, 1)
    stage.process(records([probe(0, [1])]))
    stage.checkpoint()
    with pytest.raises(WrongState, match="expected slice of partition 2, got slice of partition 1"):
        opened(tmp_path, EXACT, 2)
    with pytest.raises(WrongState, match=r"bands = 3, got .*bands = 0"):
        opened(tmp_path, BANDED, 1)

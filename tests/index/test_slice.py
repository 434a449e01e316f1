"""Tests of a slice against its naive twin, after any sequence of operations."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.index.lsm.lookup import Found, Lookup, Matches
from neardup.index.plan.design import longest_leading
from neardup.index.plan.plan import Plan
from neardup.index.plan.table import Table
from neardup.index.slices.codecs import Codec
from neardup.index.slices.slice import Slice, SliceSettings
from neardup.index.snapshot import freeze_slice, load_slice
from tests.support.fingerprints import EXAMPLES, fingerprints, simulated, words
from tests.support.naive import NaiveSlice, all_pairs
from tests.support.tables import compact

CODECS = list(Codec)


def listed(matches: Matches, queries: int) -> list[list[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = [[] for _ in range(queries)]
    for query, key, distance in zip(matches.query, matches.key, matches.distance, strict=True):
        found[int(query)].append((int(distance), int(key)))
    return found


def small(codec: Codec, **others: Any) -> SliceSettings:
    """Return settings with small limits: flushes after a few keys, compression of small runs."""
    return SliceSettings(codec=codec, tail=4, ratio=2, compress_from=6, **others)


@given(
    st.data(), st.sampled_from(CODECS), st.integers(0, 64), st.integers(0, 7), st.sampled_from([1, 3, 1000]),
    st.sampled_from([0.0, 8.0]),
)  # fmt: skip
@settings(max_examples=EXAMPLES)
def test_any_sequence_of_operations_has_the_results_of_the_twin(
    data: st.DataObject, codec: Codec, leading: int, k: int, cap: int, ttl: float
) -> None:
    ours = Slice(Table.plain(leading), settings=small(codec, cap=cap, ttl=ttl))
    twin = NaiveSlice(leading, cap, ttl)
    values, now = data.draw(fingerprints()), 0.0
    while values:
        kind = data.draw(st.sampled_from(["insert", "insert", "insert", "probe", "compact", "wait", "reload"]))
        size = data.draw(st.sampled_from([1, 3, 13]))
        batch, values = values[:size], values[size:]
        keys = words(batch)
        if kind == "probe":
            assert listed(ours.probe(keys, k), len(batch)) == [twin.probe(key, k) for key in batch]
        elif kind == "compact":
            compact(ours)
        elif kind == "wait":
            now += data.draw(st.sampled_from([0.5, 1.0, 3.0, 9.5]))
        elif kind == "reload":
            ours = reloaded(ours)
        if kind != "probe":
            asks = data.draw(st.none() | st.lists(st.booleans(), min_size=len(batch), max_size=len(batch)))
            found = listed(ours.probe_and_insert(keys, k, now, None if asks is None else np.array(asks)), len(batch))
            assert found == [
                twin.probe_and_insert(key, k, now, only_asks)
                for key, only_asks in zip(batch, asks or [False] * len(batch), strict=True)
            ]
    everything = sorted(twin.epoch_of)
    assert listed(ours.probe(words(everything), k), len(everything)) == [twin.probe(key, k) for key in everything]


def reloaded(ours: Slice) -> Slice:
    other = Slice(ours.table, skip=ours.skip, settings=ours.settings)
    plan = Plan(signature_version="1")
    with TemporaryDirectory() as directory:
        freeze_slice(ours, plan=plan, partition=0, offset=1).write(Path(directory) / "slice")
        load_slice(Path(directory) / "slice", other, plan=plan, partition=0)
    return other


@pytest.mark.parametrize("codec", CODECS)
def test_scanned_keys_are_counted_once_however_often_the_buffers_grow(codec: Codec) -> None:
    rng = np.random.default_rng(1)
    # All keys share the leading bits, so every key is compared with all earlier keys and finds them.
    keys = rng.permutation(np.unique(rng.integers(0, 2**40, 700, dtype=np.uint64)))
    ours = Slice(Table.plain(16), settings=SliceSettings(codec=codec, tail=64, compress_from=128))
    for start in range(0, keys.size, 50):
        ours.probe_and_insert(keys[start : start + 50], 64)
    assert ours.counts.scanned == keys.size * (keys.size - 1) // 2 == ours.counts.matches
    ours.probe(keys[:20], 64)
    assert ours.counts.scanned - ours.counts.matches == 0


def test_few_keys_are_scanned_if_they_are_spread_out() -> None:
    keys = np.random.default_rng(2).integers(0, 2**64, 20_000, dtype=np.uint64)
    ours = Slice(Table.plain(26))
    ours.probe_and_insert(keys, 3)
    assert 0 < ours.counts.scanned < keys.size


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("tables", [1, 4, 10, 16])
def test_all_tables_together_find_exactly_all_pairs_within_k(codec: Codec, tables: int) -> None:
    made = simulated(np.random.default_rng(tables), 3000, 300)
    found = set()
    for table in longest_leading(3, tables).tables():
        ours = Slice(table, settings=SliceSettings(codec=codec, tail=64, compress_from=128))
        keys = table.keys_of(made)
        for start in range(0, made.size, 700):
            matches = ours.probe_and_insert(keys[start : start + 700], 3)
            originals = table.fingerprints_of(matches.key)
            found |= {(int(made[start + q]), int(key)) for q, key in zip(matches.query, originals, strict=True)}
    both_ways = found | {(y, x) for x, y in found}
    wanted = {(x, y) for x, y in all_pairs(made.tolist(), made.tolist(), 3) if x != y}
    assert {(x, y) for x, y in both_ways if x != y} == wanted


@pytest.mark.parametrize("in_a_run", [False, True])
def test_a_lookup_may_require_more_leading_bits_than_the_table(in_a_run: bool) -> None:
    ours = Slice(Table.plain(4))
    ours.probe_and_insert(words([0, 1 << 58, 1]), 0)
    if in_a_run:
        compact(ours)
    found = Found()
    ours.collect(Lookup(words([0]), words([3]), leading=8), found)
    assert sorted(found.key[: found.count].tolist()) == [0, 1]


def test_a_repeated_insert_changes_nothing() -> None:
    ours = Slice(Table.plain(16), settings=small(Codec.PLAIN))
    keys = simulated(np.random.default_rng(1), 100, 30)
    ours.probe_and_insert(keys, 3)
    compact(ours)
    size = len(ours)
    ours.probe_and_insert(keys, 3)
    compact(ours)
    assert len(ours) == size == np.unique(keys).size
    assert ours.counts.repeated >= keys.size


def test_the_cap_keeps_the_nearest_and_is_counted() -> None:
    ours = Slice(Table.plain(0), settings=SliceSettings(cap=2))
    ours.insert(words([0, 0b1, 0b11, 0b111]))
    assert listed(ours.probe(words([0]), 3), 1) == [[(0, 0), (1, 1)]]
    assert ours.counts.capped == 1


def test_keys_older_than_the_time_to_live_are_dropped_and_counted() -> None:
    ours = Slice(Table.plain(8), settings=SliceSettings(ttl=80.0))
    ours.probe_and_insert(words([1, 2]), 0, now=0.0)
    ours.probe_and_insert(words([2]), 0, now=50.0)
    assert listed(ours.probe_and_insert(words([1]), 0, now=89.0), 1) == [[(0, 1)]]
    assert listed(ours.probe_and_insert(words([2, 3]), 0, now=100.0), 2) == [[(0, 2)], []]
    assert ours.counts.expired == 2


def test_no_batch_performs_a_whole_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    from neardup.index.slices import merge

    steps: list[int] = []
    original = vars(merge)["merge_step"]

    def counted(*arguments: Any) -> Any:
        reached = original(*arguments)
        steps.append(sum(reached) - sum(arguments[4]))
        return reached

    monkeypatch.setattr(merge, "merge_step", counted)
    ours = Slice(Table.plain(25))
    rng = np.random.default_rng(1)
    for _ in range(300):
        ours.probe_and_insert(rng.integers(0, 2**64, 1024, dtype=np.uint64), 3)
    largest_run = max(run.size for run in ours.runs)
    assert largest_run > 200_000
    # HASTE * 3 * (ratio + 1) keys for each of the 1024 inserted ones.
    assert max(steps) <= 1.25 * 3 * 9 * 1024 + 1
    assert len(ours.runs) < 12


@pytest.mark.parametrize("skip", [0, 1, 5, 13])
@pytest.mark.parametrize("codec", CODECS)
def test_keys_of_one_slice_share_their_first_bits(skip: int, codec: Codec) -> None:
    rng = np.random.default_rng(skip)
    keys = simulated(rng, 20_000, 2000) >> np.uint64(skip)
    if skip:
        keys |= np.uint64(5 << (64 - skip) & 2**64 - 1)
    ours = Slice(Table.plain(16), skip=skip, settings=SliceSettings(codec=codec, compress_from=1000))
    ours.insert(keys)
    twin = NaiveSlice(16)
    twin.epoch_of = dict.fromkeys(keys.tolist(), 0)
    queries = keys[:50]
    assert listed(ours.probe(queries, 3), 50) == [twin.probe(int(key), 3) for key in queries]

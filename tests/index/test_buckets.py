"""Tests of bucket tables against their naive twin, after any sequence of operations."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.index.buckets.table import BucketMatches, BucketTable
from neardup.index.plan.plan import Plan
from neardup.index.snapshot import freeze_buckets, load_buckets
from tests.support.fingerprints import EXAMPLES, words
from tests.support.naive import NaiveBuckets
from tests.support.tables import compact

PAIRS = st.lists(
    st.tuples(st.sampled_from([0, 1, 2**63, 2**64 - 1, 77]), st.one_of(st.integers(0, 12), st.just(2**64 - 1))),
    min_size=1,
    max_size=80,
)


def listed(matches: BucketMatches, queries: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(queries)]
    for query, fingerprint in zip(matches.query.tolist(), matches.fingerprint.tolist(), strict=True):
        found[query].append(fingerprint)
    return found


@given(st.data(), st.integers(1, 9), st.sampled_from([0.0, 8.0]), st.sampled_from([3, 16]))
@settings(max_examples=EXAMPLES)
def test_any_sequence_of_operations_has_the_results_of_the_twin(
    data: st.DataObject, common: int, ttl: float, recent: int
) -> None:
    options: dict[str, Any] = {"common": common, "ttl": ttl, "recent": recent, "ratio": 2}
    ours, twin = BucketTable(**options), NaiveBuckets(common, ttl)
    pairs, now = data.draw(PAIRS), 0.0
    while pairs:
        kind = data.draw(st.sampled_from(["insert", "insert", "insert", "compact", "wait", "reload"]))
        size = data.draw(st.sampled_from([1, 5, 20]))
        batch, pairs = pairs[:size], pairs[size:]
        if kind == "compact":
            compact(ours)
        elif kind == "wait":
            now += data.draw(st.sampled_from([0.5, 1.0, 3.0, 9.5]))
        elif kind == "reload":
            ours, counts = reloaded(ours, BucketTable(**options)), ours.counts
            ours.counts.common = counts.common
        asks = data.draw(st.none() | st.lists(st.booleans(), min_size=len(batch), max_size=len(batch)))
        keys, fingerprints = words([key for key, _ in batch]), words([each for _, each in batch])
        found = ours.probe_and_insert(keys, fingerprints, now, None if asks is None else np.array(asks))
        assert listed(found, len(batch)) == [
            twin.probe_and_insert(key, each, now, only_asks)
            for (key, each), only_asks in zip(batch, asks or [False] * len(batch), strict=True)
        ]
        assert ours.counts.common == twin.ignored
    if not ttl:
        assert len(ours) == sum(map(len, twin.buckets.values()))


def reloaded(ours: BucketTable, other: BucketTable) -> BucketTable:
    plan = Plan(signature_version="1", bands=1)
    with TemporaryDirectory() as directory:
        freeze_buckets(ours, plan=plan, partition=0, offset=1).write(Path(directory) / "buckets")
        load_buckets(Path(directory) / "buckets", other, plan=plan, partition=0)
    return other


@pytest.mark.parametrize("batch", [7, 300, 5000])
def test_many_pairs_in_batches_of_any_size(batch: int) -> None:
    rng = np.random.default_rng(batch)
    ours, twin = BucketTable(common=30, recent=512), NaiveBuckets(30)
    # Keys share their leading bits, and some of them are common.
    keys = np.minimum(rng.geometric(0.01, 20_000), rng.integers(0, 5000, 20_000)).astype(np.uint64)
    fingerprints = rng.integers(0, 3000, keys.size).astype(np.uint64)
    for start in range(0, keys.size, batch):
        some, others = keys[start : start + batch], fingerprints[start : start + batch]
        wanted = [twin.probe_and_insert(key, each) for key, each in zip(some.tolist(), others.tolist(), strict=True)]
        assert listed(ours.probe_and_insert(some, others), some.size) == wanted
    counts = ours.counts
    assert counts.common == twin.ignored > 0
    assert counts.inserted == len(ours) == sum(map(len, twin.buckets.values()))
    assert counts.probes == keys.size == counts.inserted + counts.repeated + counts.common
    assert counts.merges > 10


def test_more_matches_than_the_buffers_hold() -> None:
    ours = BucketTable(common=10**6, recent=64)
    for start in range(0, 1024, 64):
        ours.probe_and_insert(np.zeros(64, np.uint64), np.arange(start, start + 64, dtype=np.uint64))
    found = ours.probe_and_insert(np.zeros(64, np.uint64), np.arange(64, dtype=np.uint64))
    assert listed(found, 64) == [[each for each in range(1024) if each != own] for own in range(64)]


def test_a_common_bucket_returns_and_stores_nothing_until_it_has_expired() -> None:
    ours = BucketTable(common=2, ttl=80.0)
    ours.probe_and_insert(words([5, 5]), words([1, 2]), now=0.0)
    assert ours.probe_and_insert(words([5, 5]), words([3, 1]), now=20.0).fingerprint.size == 0
    assert len(ours) == ours.counts.common == 2
    assert listed(ours.probe_and_insert(words([5, 5]), words([3, 4]), now=90.0), 2) == [[], [3]]
    assert ours.counts.expired == 2


def test_a_repeated_pair_has_its_age_reset() -> None:
    ours = BucketTable(ttl=80.0)
    ours.probe_and_insert(words([5, 5]), words([1, 2]), now=0.0)
    ours.probe_and_insert(words([5]), words([2]), now=50.0)
    assert listed(ours.probe_and_insert(words([5]), words([9]), now=100.0), 1) == [[2]]


def test_no_batch_performs_a_whole_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    from neardup.index.buckets import pair_runs

    steps: list[int] = []
    original = vars(pair_runs)["merge_step"]

    def counted(*arguments: Any) -> Any:
        reached = original(*arguments)
        steps.append(sum(reached) - sum(arguments[4]))
        return reached

    monkeypatch.setattr(pair_runs, "merge_step", counted)
    ours = BucketTable(recent=1024)
    rng = np.random.default_rng(1)
    for _ in range(600):
        ours.probe_and_insert(*rng.integers(0, 2**64, (2, 500), dtype=np.uint64))
    assert max(steps) <= 1.25 * 9 * 500 + 1
    assert sum(steps) > 1_000_000

"""Tests of probabilistic search: order of the flips against brute force, and recall against exact search."""

from itertools import combinations
from math import exp
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import CorruptState, WrongState
from neardup.index.plan.table import Table
from neardup.index.psm.flip_model import LEVELS, FlipModel
from neardup.index.psm.flip_sets import candidate_sets
from neardup.index.psm.search import Psm
from neardup.index.psm.simulated_weights import copies, fingerprints_of, pages
from neardup.index.psm.sorting_network import sorting_network
from neardup.index.slices.slice import Slice
from neardup.kernels.index.flipping import LANES, FlipSearch, apply_network, flip_lookups
from neardup.kernels.index.vosh import SIZE_SHIFT, likeliest_sets
from tests.support.fingerprints import EXAMPLES
from tests.support.naive import likely_subsets, subset_probability


def emitted(costs: list[int], most: int, wanted: int) -> list[tuple[int, ...]]:
    bits = len(costs)
    order = np.argsort(costs, kind="stable")
    ranked = np.append(np.array(costs, np.uint64)[order], np.uint64(0))
    out = np.empty(wanted, np.uint64)
    count = likeliest_sets(ranked, bits, most, wanted, np.empty(wanted + most + 2, np.uint64), out)
    sets = []
    for word in out[:count].tolist():
        size = word >> int(SIZE_SHIFT) & 7
        sets.append(tuple(sorted(int(order[word >> 6 * (6 - place) & 63]) for place in range(size))))
    return sets


@settings(max_examples=EXAMPLES)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=9), st.integers(1, 7))
def test_sets_are_generated_once_each_in_order_of_probability(costs: list[int], most: int) -> None:
    flips = [1 / (1 + exp(cost / 256)) for cost in costs]
    wanted = likely_subsets(flips, most)
    sets = emitted(costs, most, 1000)
    assert len(sets) == len(set(sets)) == len(wanted)
    assert set(sets) == {subset for _, subset in wanted}
    chances = [subset_probability(flips, subset) for subset in sets]
    for ours, theirs in zip(chances, (chance for chance, _ in wanted), strict=True):
        assert ours == pytest.approx(theirs)


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_flips_are_the_most_likely_sets_by_candidates_or_heap(data: st.DataObject) -> None:
    header = data.draw(st.integers(1, 11), "header")
    most, wanted = data.draw(st.integers(0, 4), "most"), data.draw(st.integers(1, 40), "wanted")
    few = data.draw(st.booleans(), "few")
    table = np.array(data.draw(st.lists(st.integers(0, 8000), min_size=16, max_size=16)), np.uint16)
    # There are more rows than lanes, and the rows are requested in random order.
    rng = np.random.default_rng(data.draw(st.integers(0, 1000), "seed"))
    levels = rng.integers(0, table.size, (LANES + 3, header)).astype(np.uint8)
    numbers = rng.permutation(levels.shape[0])[: data.draw(st.sampled_from([1, LANES, LANES + 2]), "rows")]
    fingerprints = rng.integers(0, 2**64, (LANES + 3,), dtype=np.uint64)
    candidates = candidate_sets(header, most, wanted) if few else np.empty((most, 0), np.uint8)
    keys, limits = (np.empty((numbers.size, wanted + 1), np.uint64) for _ in range(2))
    networks = sorting_network(header, header), sorting_network(candidates.shape[1], wanted)
    search = FlipSearch(table, header, most, candidates, *networks)
    flip_lookups(fingerprints, levels, numbers, search, 1, keys, limits)
    for row, number in enumerate(numbers.tolist()):
        costs = table[levels[number]].tolist()
        flips = (keys[row] ^ fingerprints[number]).tolist()
        assert [most - flip.bit_count() for flip in flips] == limits[row].tolist()
        sums = sorted(sum(subset) for size in range(1, most + 1) for subset in combinations(costs, size))[:wanted]
        assert len(set(flips[: len(sums) + 1])) == len(sums) + 1
        made = [sum(costs[bit] for bit in range(header) if flip >> (63 - bit) & 1) for flip in flips]
        assert made == [0, *sums] + [0] * (wanted - len(sums))


@settings(max_examples=EXAMPLES)
@given(st.integers(1, 64), st.integers(0, 1000), st.data())
def test_a_network_sorts_the_smallest_values(size: int, seed: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, size))
    rows = np.random.default_rng(seed).integers(0, 2 * size, (size, LANES)).astype(np.int32)
    wanted = np.sort(rows, axis=0)
    apply_network(sorting_network(size, first), rows)
    assert (rows[:first] == wanted[:first]).all()
    assert (np.sort(rows, axis=0) == wanted).all()


def test_many_flips_are_left_to_the_heap() -> None:
    assert candidate_sets(24, 3, 20).shape == (3, 46)
    assert candidate_sets(24, 3, 400).shape == (3, 0)


def test_only_the_requested_sets_are_generated() -> None:
    assert emitted([5, 1, 9], 2, 3) == [(1,), (0,), (0, 1)]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("header", [12, 16])
def test_recall_against_exact_search_reaches_its_target(first: bool, header: int) -> None:
    rng = np.random.default_rng(5)
    weights = pages(rng, 30_000)
    model = FlipModel.fit(weights[:4000], copies(rng, weights[:4000]))
    sample = copies(rng, weights[4000:10_000])
    attempts = model.attempts_for(
        0.97, fingerprints_of(sample), model.levels_of(sample), fingerprints_of(weights[4000:10_000]),
        header=header, k=3, first=first,
    )  # fmt: skip
    stored = fingerprints_of(weights)
    kept = Slice(Table.plain(header))
    kept.insert(stored)
    queries = copies(rng, weights[10_000:])
    asked = fingerprints_of(queries)
    psm = Psm(model, header, attempts)
    find = psm.find_first if first else psm.find_all
    found = find(kept, asked, model.levels_of(queries))
    exact = np.bitwise_count(asked ^ stored[10_000:]) <= 3
    if first:
        recall = np.isin(np.flatnonzero(exact), found.query).mean()
    else:
        pairs = set(zip(found.query.tolist(), found.key.tolist(), strict=True))
        wanted = [(i, int(stored[10_000 + i])) for i in np.flatnonzero(exact).tolist()]
        recall = np.mean([pair in pairs for pair in wanted])
    assert recall >= 0.95
    assert found.distance.max() <= 3
    assert (np.bitwise_count(asked[found.query] ^ found.key) == found.distance).all()


def test_all_flips_are_exact_search() -> None:
    rng = np.random.default_rng(1)
    weights = pages(rng, 300)
    model = FlipModel.fit(weights, copies(rng, weights))
    stored = fingerprints_of(weights)
    kept = Slice(Table.plain(10))
    kept.insert(stored)
    queries = copies(rng, weights, spread=0.3)
    asked = fingerprints_of(queries)
    found = Psm(model, 10, 10 + 45 + 120).find_all(kept, asked, model.levels_of(queries))
    near = np.bitwise_count(asked[:, None] ^ stored[None, :]) <= 3
    assert set(zip(found.query.tolist(), found.key.tolist(), strict=True)) == {
        (int(i), int(stored[j])) for i, j in np.argwhere(near)
    }


def test_a_model_is_read_back_from_its_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    weights = pages(rng, 1000)
    model = FlipModel.fit(weights, copies(rng, weights))
    assert list(model.costs) == sorted(model.costs)
    model.save(tmp_path / "flips.json")
    assert FlipModel.load(tmp_path / "flips.json") == model
    (tmp_path / "flips.json").write_text('{"magic": "neardup flip model", "version": 9, "costs": []}')
    with pytest.raises(WrongState, match="version 1, got 'neardup flip model' version 9"):
        FlipModel.load(tmp_path / "flips.json")
    (tmp_path / "flips.json").write_text("{")
    with pytest.raises(CorruptState, match="expected a flip model"):
        FlipModel.load(tmp_path / "flips.json")
    with pytest.raises(ValueError, match="do not fall"):
        FlipModel(tuple(range(LEVELS, 0, -1)))

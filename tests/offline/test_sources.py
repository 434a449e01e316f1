"""Tests that every source of pairs has the results of a comparison of all pairs, in any sequence of calls."""

import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from neardup.errors import CorruptState, WrongState
from neardup.kernels.offline.postings import expand
from neardup.kernels.signatures import comparing
from neardup.offline.options import Options
from neardup.offline.pairs import counted_runs, postings, shared_keys
from neardup.offline.pairs.pair_source import IgnoredKeys, Pairs
from neardup.offline.pairs.postings import Postings
from neardup.offline.pairs.sources import MARGIN, KeySource, ShingleSource, make_source
from neardup.settings import PAIR_SOURCES
from neardup.signatures.bands import BandFilter
from neardup.signatures.packed_sketch import LEAST_SAMPLED
from neardup.signatures.sketch import super_shingles
from tests.offline.rows import rows_of
from tests.support import naive

M = 8
OPTIONS = Options(signature_version="s", bands=BandFilter(k=4, s=2), super_size=2, memory_bytes=1 << 20)
Found = dict[tuple[int, int], float]


def shingle(number: int) -> int:
    """Return a hash with 40 leading bits of its own, divisible by 2^(number % 4)."""
    return naive.xxh64(bytes([number])) >> 8 << 8 | 1 << number % 4


@st.composite
def made_sketches(draw: st.DrawFn) -> naive.Sketch:
    """Generate sketches with few different shingles and values, so that documents have some in common."""
    exponent = draw(st.integers(0, 2))
    numbers = draw(st.sets(st.integers(0, 40), max_size=30))
    sample = sorted(shingle(number) for number in numbers if number % 4 >= exponent)
    # Only a small document has a small sample.
    exponent = exponent if len(sample) > 12 else 0
    return exponent, draw(st.lists(st.integers(0, 2), min_size=M, max_size=M)), sample


SKETCHES = st.lists(made_sketches(), min_size=1, max_size=14)
COMMON = st.sampled_from([1, 2, 4, 100])
CUTS = st.lists(st.integers(0, 14), max_size=3).map(sorted)


def packed(sketch: naive.Sketch) -> NDArray[np.uint64]:
    exponent, mips, sample = sketch
    words: NDArray[np.uint64] = comparing.pack(exponent, np.array(mips, np.uint32), np.array(sample, np.uint64))
    return words


def found_in(pairs: Pairs) -> Found:
    assert pairs.a.dtype == pairs.b.dtype == np.uint32
    assert (pairs.a < pairs.b).all()
    listed = list(zip(pairs.a.tolist(), pairs.b.tolist(), strict=True))
    assert listed == sorted(set(listed))
    return dict(zip(listed, pairs.score.tolist(), strict=True))


def assert_found(
    name: str,
    options: Options,
    sketches: Sequence[NDArray[np.uint64]],
    kept: Sequence[bool],
    cuts: Sequence[int],
    expected: Callable[[int, int], tuple[Found, tuple[int, int]]],
    fingerprints: Sequence[int] = (),
) -> None:
    """Check the pairs of calls that end at the cuts and at the end, each repeated, against `expected`."""
    ends = [*(cut for cut in cuts if cut < len(sketches)), len(sketches)]
    with TemporaryDirectory() as directory:
        first_new = 0
        for end in ends:
            documents = rows_of(sketches[:end], fingerprints[:end])
            for _ in range(2):
                source = make_source(name, Path(directory), options)
                pairs, ignored = source.pairs(documents, np.array(kept[:end], bool), first_new, lambda done, of: None)
                scores, common = expected(end, first_new)
                assert found_in(pairs) == {pair: np.float32(score) for pair, score in scores.items()}
                assert ignored == IgnoredKeys(*common)
            first_new = end


def kept_rows(data: st.DataObject, count: int) -> list[bool]:
    return data.draw(st.lists(st.integers(0, 4).map(bool), min_size=count, max_size=count))


KEYS: dict[str, Callable[[naive.Sketch], set[int]]] = {
    "shingles": lambda sketch: set(sketch[2]),
    "supers": lambda sketch: set(super_shingles(np.array(sketch[2], np.uint64), OPTIONS.super_size).tolist()),
    "bands": lambda sketch: {hash((band, *sketch[1][2 * band : 2 * band + 2])) for band in range(4)},
}


@pytest.mark.parametrize("name", ["shingles", "supers", "bands"])
@given(made=SKETCHES, common=COMMON, cuts=CUTS, data=st.data())
@settings(max_examples=40)
def test_documents_that_share_keys(
    name: str, made: list[naive.Sketch], common: int, cuts: list[int], data: st.DataObject
) -> None:
    kept = kept_rows(data, len(made))
    keys = [KEYS[name](sketch) for sketch in made]
    options = replace(OPTIONS, common=common)
    least = options.thresholds.resemblance - MARGIN, options.thresholds.containment - MARGIN

    def expected(rows: int, first_new: int) -> tuple[Found, tuple[int, int]]:
        shared = naive.pairs_sharing(keys[:rows], kept[:rows], first_new, common)
        scores: Found = {pair: float(count) for pair, count in shared.items()}
        if name == "shingles":
            scored = {(a, b): naive.sample_score(made[a], made[b], least, LEAST_SAMPLED) for a, b in shared}
            scores = {pair: score for pair, score in scored.items() if score is not None}
        return scores, naive.common_keys(keys[:rows], kept[:rows], common)

    assert_found(name, options, [packed(sketch) for sketch in made], kept, cuts, expected)


SPOTS = st.dictionaries(st.integers(1, 40).map(lambda number: number << 40), st.integers(1, 4), max_size=12)


@given(bags=st.lists(SPOTS, min_size=1, max_size=12), least=st.sampled_from([0.2, 0.44, 0.8, 1.0]),
       common=COMMON, cuts=CUTS, data=st.data())  # fmt: skip
@settings(max_examples=60)
def test_documents_whose_spots_resemble(
    bags: list[dict[int, int]], least: float, common: int, cuts: list[int], data: st.DataObject
) -> None:
    kept = kept_rows(data, len(bags))
    sketches = []
    for bag in bags:
        words = packed((0, [0] * M, []))
        words[0] |= np.uint64(len(bag) << 24)
        spots = np.array([spot << 8 | count for spot, count in sorted(bag.items())], np.uint64)
        sketches.append(np.concatenate([words, spots]))
    # Each occurrence of a spot is a key of its own.
    keys = [{spot + number for spot, count in bag.items() for number in range(count)} for bag in bags]

    def expected(rows: int, first_new: int) -> tuple[Found, tuple[int, int]]:
        shared = naive.pairs_sharing(keys[:rows], kept[:rows], first_new, common)
        scores = {(a, b): naive.bag_resemblance(Counter(bags[a]), Counter(bags[b])) for a, b in shared}
        near = {pair: score for pair, score in scores.items() if score >= least}
        return near, naive.common_keys(keys[:rows], kept[:rows], common)

    assert_found("spots", replace(OPTIONS, common=common, spot_resemblance=least), sketches, kept, cuts, expected)


def flipped(word: int, bits: list[int]) -> int:
    for bit in bits:
        word ^= 1 << bit
    return word


FINGERPRINTS = st.lists(
    st.builds(flipped, st.sampled_from([0, 2**64 - 1, naive.xxh64(b"a")]), st.lists(st.integers(0, 63), max_size=4)),
    min_size=1,
    max_size=14,
)


@pytest.mark.parametrize("name", ["hamming", "psm"])
@given(fingerprints=FINGERPRINTS, k=st.integers(0, 4), common=COMMON, cuts=CUTS, data=st.data())
@settings(max_examples=40)
def test_documents_with_near_fingerprints(
    name: str, fingerprints: list[int], k: int, common: int, cuts: list[int], data: st.DataObject
) -> None:
    kept = kept_rows(data, len(fingerprints))

    def expected(rows: int, first_new: int) -> tuple[Found, tuple[int, int]]:
        near = naive.near_fingerprints(fingerprints[:rows], kept[:rows], first_new, k, common)
        if name == "psm":
            header = {pair: (fingerprints[pair[0]] ^ fingerprints[pair[1]]) >> 48 for pair in near}
            near = {pair: distance for pair, distance in near.items() if header[pair].bit_count() <= 1}
        keys = [{fingerprint} for fingerprint in fingerprints[:rows]]
        return dict(near), naive.common_keys(keys, kept[:rows], common)

    sketches = [np.empty(0, np.uint64)] * len(fingerprints)
    options = replace(OPTIONS, hamming=k, common=common)
    assert_found(name, options, sketches, kept, cuts, expected, fingerprints)


def test_every_source_in_the_settings_can_be_created(tmp_path: Path) -> None:
    for name in PAIR_SOURCES:
        assert make_source(name, tmp_path / name, OPTIONS).name == name


# Memory


def groups(count: int, size: int) -> list[NDArray[np.uint64]]:
    """Return groups of documents that share nearly all shingles."""
    rng = np.random.default_rng(5)
    made = []
    for _ in range(count):
        base = rng.integers(0, 2**64, 60, np.uint64)
        for _ in range(size):
            sample = base.copy()
            sample[rng.integers(0, 60, 3)] = rng.integers(0, 2**64, 3, np.uint64)
            made.append(packed((0, [0] * M, np.unique(sample).tolist())))
    return made


def pairs_of(directory: Path, sketches: Sequence[NDArray[np.uint64]], options: Options, first_new: int = 0) -> Any:
    source = make_source("shingles", directory, options)
    pairs, ignored = source.pairs(rows_of(sketches), np.ones(len(sketches), bool), first_new, lambda done, of: None)
    return found_in(pairs), ignored


def test_a_small_memory_limit_does_not_change_the_results(tmp_path: Path) -> None:
    sketches = groups(20, 16)
    options = replace(OPTIONS, common=16)
    expected = pairs_of(tmp_path / "all at once", sketches, options)
    assert len(expected[0]) == 20 * 16 * 15 // 2
    little = replace(options, memory_bytes=1 << 16)
    largest = 0
    cut = counted_runs.RunBuffer.cut

    def expanding(*given: Any) -> Any:
        nonlocal largest
        done = expand(*given)
        largest = max(largest, done[-1])
        return done

    with (
        patch.object(shared_keys, "expand", expanding),
        patch.object(counted_runs.RunBuffer, "cut", autospec=True, side_effect=cut) as cutting,
    ):
        assert pairs_of(tmp_path / "little", sketches, little) == expected
    assert cutting.call_count > 10
    assert 8 * largest <= little.memory_bytes
    assert {path.name for path in (tmp_path / "little").iterdir()} == {"postings.json", "postings-320"}
    assert pairs_of(tmp_path / "little", sketches, little) == expected


@pytest.mark.parametrize("name", ["bands", "hamming"])
def test_allocated_memory_stays_near_the_limit_for_any_number_of_pairs(name: str, tmp_path: Path) -> None:
    limit, of_each = 2 << 20, 450
    rows = np.repeat(np.arange(10), of_each)
    sketches = [packed((0, [int(group)] * M, [])) for group in rows]
    fingerprints = [naive.xxh64(bytes([group])) for group in rows.tolist()]
    documents, kept = rows_of(sketches, fingerprints), np.ones(rows.size, bool)
    options = replace(OPTIONS, memory_bytes=limit, bands=BandFilter(k=1, s=2))
    source = make_source(name, tmp_path, options)
    source.pairs(rows_of(sketches[:9], fingerprints[:9]), kept[:9], 0, lambda done, of: None)  # loads the kernels
    tracemalloc.start()
    try:
        pairs, _ = source.pairs(documents, kept, 9, lambda done, of: None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert pairs.a.size == 10 * of_each * (of_each - 1) // 2 - 9 * 8 // 2
    assert sum(column.nbytes for column in pairs) > 5 * limit
    assert peak < 2.5 * limit


def test_frequent_fingerprints_are_paired_in_little_memory(tmp_path: Path) -> None:
    near = [0, 1, 3, 2**64 - 1]
    fingerprints = [near[row % 4] for row in range(240)]
    sketches = [np.empty(0, np.uint64)] * len(fingerprints)

    def found(directory: str, memory_bytes: int) -> Found:
        source = make_source("hamming", tmp_path / directory, replace(OPTIONS, memory_bytes=memory_bytes))
        pairs, _ = source.pairs(rows_of(sketches, fingerprints), np.ones(240, bool), 0, lambda done, of: None)
        return found_in(pairs)

    expected = found("much", 1 << 24)
    assert len(expected) == 180 * 179 // 2 + 60 * 59 // 2
    cut, largest = counted_runs.RunBuffer.cut, 0

    def cutting(buffer: counted_runs.RunBuffer) -> None:
        nonlocal largest
        largest = max(largest, buffer.filled)
        cut(buffer)

    with patch.object(counted_runs.RunBuffer, "cut", autospec=True, side_effect=cutting) as cuts:
        assert found("little", 1 << 14) == expected
    assert cuts.call_count > 10
    assert 16 * largest <= 1 << 13
    assert not list((tmp_path / "little").iterdir())


def test_the_number_of_keys_of_a_frequent_spot_is_limited(tmp_path: Path) -> None:
    sketch = packed((0, [0] * M, []))
    sketch[0] |= np.uint64(2 << 24)
    often = np.concatenate([sketch, np.array([1 << 40 | 255, 2 << 40 | 255], np.uint64)])
    with patch.object(postings, "_sorted", side_effect=postings._sorted) as sorting:
        options = replace(OPTIONS, memory_bytes=32 * 1024)
        source = make_source("spots", tmp_path, options)
        pairs, _ = source.pairs(rows_of([often] * 9), np.ones(9, bool), 0, lambda done, of: None)
    # The two rows have 1020 keys, and no more of them are sorted together.
    assert [call.args[1].size for call in sorting.call_args_list] == [2, 2, 2, 2, 1]
    assert len(found_in(pairs)) == 36


# Stored keys


def test_the_same_call_after_a_crash_has_the_same_result(tmp_path: Path) -> None:
    sketches = groups(4, 10)
    first = pairs_of(tmp_path, sketches[:25], OPTIONS)
    with patch.object(Path, "replace", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        pairs_of(tmp_path, sketches, OPTIONS, 25)
    assert pairs_of(tmp_path, sketches[:25], OPTIONS) == first
    second, _ = pairs_of(tmp_path, sketches, OPTIONS, 25)
    whole, _ = pairs_of(tmp_path / "whole", sketches, OPTIONS)
    assert {**first[0], **second} == whole
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["postings-40", "postings.json"]


def test_rows_that_are_no_longer_kept_have_no_pairs(tmp_path: Path) -> None:
    sketches = groups(2, 4)
    pairs_of(tmp_path, sketches, OPTIONS)
    source = make_source("shingles", tmp_path, OPTIONS)
    kept = np.ones(8, bool)
    kept[1] = False
    pairs, _ = source.pairs(rows_of(sketches), kept, 0, lambda done, of: None)
    assert len(found_in(pairs)) == 3 + 6
    assert all(1 not in pair for pair in found_in(pairs))


def test_rows_of_a_shingle_can_be_queried(tmp_path: Path) -> None:
    sketches = groups(3, 5)
    pairs_of(tmp_path, sketches, OPTIONS)
    source = make_source("shingles", tmp_path, OPTIONS)
    assert isinstance(source, KeySource)
    own = sketches[7][-3:]
    places, rows = source.postings.rows_with(own)
    assert {(place, 7) for place in range(3)} <= set(zip(places.tolist(), rows.tolist(), strict=True))
    assert set(rows.tolist()) <= set(range(5, 10))


def test_keys_of_other_options_are_rebuilt(tmp_path: Path) -> None:
    sketches = groups(2, 4)
    one, _ = pairs_of(tmp_path, sketches, OPTIONS)
    assert Postings(tmp_path, "something else").rows == 0
    assert pairs_of(tmp_path, sketches, OPTIONS)[0] == one


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    sketches = groups(2, 4)
    pairs_of(tmp_path, sketches, OPTIONS)
    with pytest.raises(WrongState, match="expected postings of at most 3 rows, got 8; delete it"):
        pairs_of(tmp_path, sketches[:3], OPTIONS)
    (tmp_path / "postings-8").write_bytes(b"")
    with pytest.raises(CorruptState, match="expected 3840 bytes of postings, got another size; delete"):
        ShingleSource(tmp_path, OPTIONS)
    (tmp_path / "postings.json").write_text('{"version": 7}')
    with pytest.raises(WrongState, match="expected version 3, got 7"):
        ShingleSource(tmp_path, OPTIONS)
    (tmp_path / "postings.json").write_text("[")
    with pytest.raises(CorruptState, match="expected postings"):
        ShingleSource(tmp_path, OPTIONS)

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from neardup.kernels.offline import sketch_keys
from neardup.kernels.signatures import comparing
from neardup.signatures.packed_sketch import sample_values
from neardup.signatures.sketch import super_shingles
from neardup.signatures.spot_signatures import SpotSignatures
from tests.support import naive

M = 20


@st.composite
def sketches(draw: st.DrawFn) -> NDArray[np.uint64]:
    """Generate packed sketches with spots. Some are empty, like the sketch of a copy."""
    if draw(st.integers(0, 9)) == 0:
        return np.empty(0, np.uint64)
    mips = draw(st.lists(st.integers(0, 2**32 - 1), min_size=M, max_size=M))
    sample = sorted(draw(st.sets(st.integers(0, 2**64 - 1), max_size=12)))
    packed = comparing.pack(draw(st.integers(0, 5)), np.array(mips, np.uint32), np.array(sample, np.uint64))
    spots = sorted(draw(st.dictionaries(st.integers(1, 2**56 - 1), st.integers(1, 5), max_size=6)).items())
    packed[0] |= np.uint64(len(spots) << 24)
    return np.concatenate([packed, np.array([spot << 8 | count for spot, count in spots], np.uint64)])


def spots_of(packed: NDArray[np.uint64]) -> SpotSignatures:
    """Return the spot signatures of a packed sketch, with 0 in the low byte of each hash."""
    kept = packed[packed.size - (int(packed[0]) >> 24 & 0xFF) :]
    return SpotSignatures(kept & ~np.uint64(0xFF), (kept & np.uint64(0xFF)).astype(np.int64))


@given(st.lists(sketches(), max_size=8), st.integers(1, M), st.data())
def test_the_keys_of_packed_sketches(made: list[NDArray[np.uint64]], s: int, data: st.DataObject) -> None:
    words = np.concatenate([np.empty(0, np.uint64), *made])
    starts = np.cumsum([0, *(each.size for each in made)])
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, len(made) - 1)))) if made else [], np.int64)
    nothing = np.empty(0, np.uint64)
    samples = [sample_values(made[row])[1] if made[row].size else nothing for row in rows]

    def assert_keys(found: tuple[NDArray[np.uint64], NDArray[np.int64]], expected: list[NDArray[np.uint64]]) -> None:
        assert found[1].tolist() == [each.size for each in expected]
        assert found[0].tolist() == np.concatenate([nothing, *expected]).tolist()

    assert_keys(sketch_keys.sample_keys(words, starts, rows), samples)
    assert_keys(sketch_keys.super_keys(words, starts, rows, s), [super_shingles(each, s) for each in samples])
    low = [made[row][1 : 1 + (M + 7) // 8].astype("<u8").view(np.uint8)[:M].tolist() for row in rows]
    found, sizes = sketch_keys.band_keys(words, starts, rows, M // s, s)
    bands = [(band, *each[band * s : band * s + s]) for each in low if each for band in range(M // s)]
    assert sizes.tolist() == [M // s if each else 0 for each in low]
    assert len(found) == len(bands)
    assert len(set(zip(found.tolist(), bands, strict=True))) == len(set(bands)) == len(set(found.tolist()))
    found, sizes = sketch_keys.spot_keys(words, starts, rows)
    bags = [spots_of(made[row]) for row in rows if made[row].size]
    assert sizes[sizes > 0].tolist() == [bag.size for bag in bags if bag.size]
    assert sketch_keys.spot_sizes(words, starts)[rows].tolist() == sizes.tolist()
    occurrences = {
        (spot, number)
        for bag in bags
        for spot, count in zip(bag.hashes.tolist(), bag.counts.tolist(), strict=True)
        for number in range(count)
    }
    assert len(set(found.tolist())) == len(occurrences)


@given(sketches().filter(len), sketches().filter(len), st.floats(0, 1))
def test_resemblance_of_spots(one: NDArray[np.uint64], other: NDArray[np.uint64], least: float) -> None:
    words, starts = np.concatenate([one, other]), np.cumsum([0, one.size, other.size])
    sizes = sketch_keys.spot_sizes(words, starts)
    if not sizes.sum():
        return
    a, b = (
        Counter(dict(zip(spots.hashes.tolist(), spots.counts.tolist(), strict=True)))
        for spots in map(spots_of, (one, other))
    )
    expected = naive.bag_resemblance(a, b)
    found = sketch_keys.score_spots(words, starts, sizes, np.array([1], np.uint64), least)
    assert found.tolist() == [np.float32(expected if expected >= least else -1)]

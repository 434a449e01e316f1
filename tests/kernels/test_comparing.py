import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from neardup.kernels.signatures import comparing
from tests.support import naive

VECTORS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40)
SAMPLES = st.lists(st.integers(0, 2**10).map(lambda value: value << 2), unique=True, max_size=20).map(sorted)


def packed(exponent: int, mips: list[int], sample: list[int]) -> NDArray[np.uint64]:
    words: NDArray[np.uint64] = comparing.pack(exponent, np.array(mips, np.uint32), np.array(sample, np.uint64))
    return words


@given(st.integers(0, 63), VECTORS, SAMPLES)
def test_pack(exponent: int, mips: list[int], sample: list[int]) -> None:
    assert packed(exponent, mips, sample).tolist() == naive.packed_sketch(exponent, mips, sample)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[naive.Sketch, naive.Sketch]:
    """Generate two sketches with MIPs vectors of equal length that agree in many low bytes, and overlapping samples."""
    one = draw(VECTORS)
    changed = st.sampled_from([0, 0, 0, 1, 128, 255, 256, 2**31])
    other = [value ^ draw(changed) for value in one]
    samples = draw(SAMPLES), draw(SAMPLES)
    exponents = st.integers(0, 6)
    return (draw(exponents), one, samples[0]), (draw(exponents), other, sorted({*samples[0][::2], *samples[1]}))


@given(pairs())
def test_compare(pair: tuple[naive.Sketch, naive.Sketch]) -> None:
    a, b = pair
    assert tuple(comparing.compare(packed(*a), packed(*b))) == naive.compared(a, b)
    assert tuple(comparing.compare(packed(*b), packed(*a))) == naive.compared(b, a)


@given(st.lists(st.tuples(pairs(), st.booleans()), min_size=1, max_size=5))
def test_compare_with_each(made: list[tuple[tuple[naive.Sketch, naive.Sketch], bool]]) -> None:
    (own, _), _ = made[0]
    own = own[0], own[1], spread(own[2])
    others = [(b[0], (b[1] + own[1])[: len(own[1])], spread(b[2])) if kept else None for (_, b), kept in made]
    sketches = [packed(*other) if other else np.empty(0, np.uint64) for other in others]
    out = np.full((len(others), 4), -1, np.int64)
    ends = np.cumsum([each.size for each in sketches])
    comparing.compare_with_each(packed(*own), np.concatenate(sketches), ends, out)
    assert out.tolist() == naive.compared_with_each(own, others)


def spread(sample: list[int]) -> list[int]:
    """Set leading bits of the values without a change of their divisibility."""
    return [value << 44 | value for value in sample]


@given(pairs())
def test_a_sketch_equals_itself(pair: tuple[naive.Sketch, naive.Sketch]) -> None:
    for sketch in pair:
        equal, left, right, shared = comparing.compare(packed(*sketch), packed(*sketch))
        assert equal == len(sketch[1])
        assert left == right == shared


@given(pairs(), st.integers(1, 6), st.data())
def test_shared_bands(pair: tuple[naive.Sketch, naive.Sketch], s: int, data: st.DataObject) -> None:
    a, b = pair
    k = data.draw(st.integers(0, len(a[1]) // s))
    first = data.draw(st.integers(max(0, k - 64), k))
    found = int(comparing.shared_bands(packed(*a), packed(*b), first, k, s))
    assert [found >> bit & 1 == 1 for bit in range(k - first)] == naive.shared_bands(a[1], b[1], k, s)[first:]
    assert found >> (k - first) == 0

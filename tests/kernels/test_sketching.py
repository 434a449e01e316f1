import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.signatures import sketching
from tests.support import naive

SETS = st.one_of(
    st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=120),
    st.lists(st.integers(2**64 - 500, 2**64 - 1), unique=True, max_size=120),  # far from uniform
    st.lists(st.integers(0, 500), unique=True, max_size=120),
)


def array(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, dtype=np.uint64)


@given(SETS, st.integers(1, 20))
def test_smallest(values: list[int], s: int) -> None:
    assert sketching.smallest(array(values), s).tolist() == naive.smallest(values, s)


@given(SETS, st.integers(0, 12))
def test_divisible(values: list[int], i: int) -> None:
    assert sketching.divisible(array(values), i).tolist() == naive.divisible(values, i)


@given(SETS, st.integers(1, 40))
def test_one_permutation_with_densification(values: list[int], m: int) -> None:
    comp = sketching.mips(array(values + values[:5]), m)
    assert comp.tolist() == naive.one_permutation(values, m)


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_groups(k: int, s: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=k * s, max_size=k * s + 3))
    comp = sketching.groups(np.array(values, dtype=np.uint32), k, s)
    assert comp.tolist() == naive.group_keys(values, k, s)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_equal_places(pairs: list[tuple[int, int]]) -> None:
    a = np.array([left for left, _ in pairs], dtype=np.uint32)
    b = np.array([right for _, right in pairs], dtype=np.uint32)
    assert sketching.equal_places(a, b) == sum(left == right for left, right in pairs)

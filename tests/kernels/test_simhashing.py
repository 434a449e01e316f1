import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import simhashing
from tests import naive

HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=40)
WIDTHS = st.sampled_from([32, 48, 64, 65, 96, 128])


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 10**6)), max_size=40), WIDTHS)
def test_weighted_votes_and_their_signs(features: list[tuple[int, int]], width: int) -> None:
    hashes, weights = [feature for feature, _ in features], [weight for _, weight in features]
    comp = simhashing.vote(np.array(hashes, dtype=np.uint64), np.array(weights, dtype=np.int64), width)
    ref = naive.votes(hashes, weights, width)
    assert comp.tolist() == ref
    low, high = simhashing.signs(comp).tolist()
    assert high << 64 | low == naive.simhash(ref)


@given(HASHES, WIDTHS)
def test_equal_votes(hashes: list[int], width: int) -> None:
    comp = simhashing.vote_equal(np.array(hashes, dtype=np.uint64), simhashing.SPREAD, width)
    assert comp.tolist() == naive.votes(hashes, [1] * len(hashes), width)


def test_counters_do_not_overflow() -> None:
    hashes = np.full(600, 2**64 - 1, dtype=np.uint64)
    assert simhashing.vote_equal(hashes, simhashing.SPREAD, 64).tolist() == [600] * 64

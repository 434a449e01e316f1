import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.signatures import simhashing
from tests.support import naive

HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=40)
WIDTHS = st.sampled_from([32, 48, 64, 65, 96, 128])


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 10**6)), max_size=40), WIDTHS)
def test_weighted_votes_and_their_signs(features: list[tuple[int, int]], width: int) -> None:
    hashes, weights = [feature for feature, _ in features], [weight for _, weight in features]
    comp = simhashing.vote(np.array(hashes, dtype=np.uint64), np.array(weights, dtype=np.int64), width)
    ref = naive.votes(hashes, weights, width)
    assert comp.tolist() == ref
    low, high = simhashing.signs(comp)
    assert int(high) << 64 | int(low) == naive.simhash(ref)


@given(HASHES, WIDTHS)
def test_equal_votes(hashes: list[int], width: int) -> None:
    comp = simhashing.vote_equal(np.array(hashes, dtype=np.uint64), width)
    assert comp.tolist() == naive.votes(hashes, [1] * len(hashes), width)


@given(HASHES, st.booleans(), WIDTHS)
def test_simhash_is_votes_and_signs(hashes: list[int], weighted: bool, width: int) -> None:
    weights = [i % 7 + 1 if weighted else 1 for i in range(len(hashes))]
    given_weights = np.array(weights if weighted else [], dtype=np.int64)
    votes, low, high = simhashing.simhash(np.array(hashes, dtype=np.uint64), given_weights, width)
    ref = naive.votes(hashes, weights, width)
    assert votes.tolist() == ref
    assert int(high) << 64 | int(low) == naive.simhash(ref)


def test_many_features_are_counted() -> None:
    hashes = np.full(5003, 2**64 - 1, dtype=np.uint64)
    assert simhashing.vote_equal(hashes, 64).tolist() == [5003] * 64

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from neardup.kernels.offline import verifying
from neardup.signatures.packed_sketch import LEAST_SAMPLED, compare
from tests.support.documents import shingles, sketch_of

SOME = shingles(1, 300)
sets = st.tuples(st.integers(0, 200), st.integers(5, 300)).map(lambda cut: SOME[cut[0] : cut[0] + cut[1]])


@given(st.lists(sets, min_size=2, max_size=5), st.data())
def test_many_pairs_are_compared_like_one(some: list[NDArray[np.uint64]], data: st.DataObject) -> None:
    sketches = [sketch_of(each, 16) for each in some]
    row = st.integers(0, len(some) - 1)
    pairs = data.draw(st.lists(st.tuples(row, row), max_size=8))
    a, b = (np.array([pair[side] for pair in pairs], np.uint32) for side in (0, 1))
    words, starts = np.concatenate(sketches), np.cumsum([0, *(sketch.size for sketch in sketches)])
    found = verifying.likenesses(a, b, words, starts, LEAST_SAMPLED, verifying.NEVER)
    expected = [compare(sketches[one], sketches[other]) for one, other in pairs]
    assert found.tolist() == [[-1.0 if value is None else value for value in each] for each in expected]
    # The containment of documents with enough resemblance is not computed.
    enough = verifying.likenesses(a, b, words, starts, LEAST_SAMPLED, 0.6)
    assert (enough[:, 0] == found[:, 0]).all()
    assert (enough[found[:, 0] >= 0.6, 1:] == -1).all()
    assert (enough[found[:, 0] < 0.6] == found[found[:, 0] < 0.6]).all()
    assert verifying.resemblances(a, b, words, starts).tolist() == [each.resemblance for each in expected]

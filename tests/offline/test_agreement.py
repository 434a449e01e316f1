import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import naive
from tests.support.agreement import agreement

labels = st.integers(1, 12).flatmap(
    lambda count: st.tuples(*[st.lists(st.integers(0, 4), min_size=count, max_size=count)] * 2)
)


@given(labels)
def test_agreement_follows_the_definitions(both: tuple[list[int], list[int]]) -> None:
    found, true = both
    figures = agreement(np.array(found), np.array(true))
    assert (figures.precision, figures.recall) == naive.pairwise(found, true)
    assert (figures.bcubed_precision, figures.bcubed_recall) == pytest.approx(naive.bcubed(found, true))
    assert figures.rand == pytest.approx(naive.adjusted_rand(found, true))


@given(labels)
def test_a_clustering_agrees_with_itself_under_other_names(both: tuple[list[int], list[int]]) -> None:
    found, _ = both
    figures = agreement(np.array(found), np.array([f"cluster {9 - label}" for label in found]))
    assert tuple(figures) == (1.0,) * 5
    assert (figures.f1, figures.bcubed_f1) == (1.0, 1.0)


def test_a_split_cluster_lowers_only_recall() -> None:
    figures = agreement(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 5]))
    assert (figures.precision, figures.recall) == (1.0, 2 / 6)
    assert (figures.bcubed_precision, figures.bcubed_recall) == (1.0, 0.5)

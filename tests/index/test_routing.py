"""Tests of the owner of a fingerprint: the function is deterministic, evenly distributed, and never changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.index.plan.routing import owner_of, owners_among, owners_of, rows_by_owner
from tests.support.documents import word
from tests.support.fingerprints import EDGES, simulated, words


@given(st.lists(word | st.sampled_from(EDGES)), st.integers(1, 10_000))
def test_one_and_many_agree(values: list[int], owners: int) -> None:
    many = owners_of(words(values), owners).tolist()
    assert many == [owner_of(value, owners) for value in values]
    assert all(0 <= owner < owners for owner in many)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20), st.integers(1, 5))
def test_rows_by_owner_are_all_rows_in_order_with_their_owner(values: list[int], owners: int) -> None:
    found = [(owner, words(values)[rows].tolist()) for owner, rows in rows_by_owner(words(values), owners)]
    among = sorted({owner_of(value, owners) for value in values})
    assert found == [(owner, [value for value in values if owner_of(value, owners) == owner]) for owner in among]
    assert owners_among(words(values), owners) == among


@pytest.mark.parametrize("owners", [2, 4, 7, 16])
@pytest.mark.parametrize("kind", ["random", "counted", "few bits differ"])
def test_fingerprints_are_spread_evenly(owners: int, kind: str) -> None:
    rng = np.random.default_rng(1)
    size = 2000 * owners
    fingerprints = {
        "random": rng.integers(0, 2**64, size, np.uint64),
        "counted": np.arange(size, dtype=np.uint64),
        "few bits differ": simulated(rng, size, size // 4),
    }[kind]
    load = np.bincount(owners_of(fingerprints, owners), minlength=owners)
    # Six standard deviations of a uniform distribution; clusters of four widen it.
    assert np.abs(load - 2000).max() < 6 * np.sqrt(2000) * (2 if kind == "few bits differ" else 1)


def test_the_owner_of_a_fingerprint_never_changes() -> None:
    asked = [0, 1, 2, 2**63, 2**64 - 1, 0x0123456789ABCDEF]
    assert [owner_of(value, 10) for value in asked] == [0, 6, 2, 5, 3, 0]
    assert [owner_of(value, 1) for value in asked] == [0] * 6

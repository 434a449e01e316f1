"""Who owns a fingerprint: the same said twice, spread evenly, and never changed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.owners import owner_of, owners_of
from tests.documents import word
from tests.fingerprints import EDGES, simulated, words


@given(st.lists(word | st.sampled_from(EDGES)), st.integers(1, 10_000))
def test_one_and_many_agree(values: list[int], owners: int) -> None:
    many = owners_of(words(values), owners).tolist()
    assert many == [owner_of(value, owners) for value in values]
    assert all(0 <= owner < owners for owner in many)


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
    # Six standard deviations of a fair throw; clusters of four widen it.
    assert np.abs(load - 2000).max() < 6 * np.sqrt(2000) * (2 if kind == "few bits differ" else 1)


def test_the_owner_of_a_fingerprint_never_changes() -> None:
    asked = [0, 1, 2, 2**63, 2**64 - 1, 0x0123456789ABCDEF]
    assert [owner_of(value, 10) for value in asked] == [0, 6, 2, 5, 3, 0]
    assert [owner_of(value, 1) for value in asked] == [0] * 6

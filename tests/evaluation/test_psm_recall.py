"""Tests that the computed recall of the probabilistic search on labelled pairs equals that of the search itself."""

from dataclasses import replace

import numpy as np
import pytest

from neardup.errors import InvalidPair
from neardup.evaluation.pairs import Pair, read_pairs
from neardup.evaluation.psm_recall import psm_recall
from neardup.index.psm.flip_model import simulated_model
from neardup.index.psm.search import Psm
from neardup.settings import Settings
from neardup.signatures.fingerprint import hamming
from neardup.signatures.signature import Signatures
from tests.evaluation.made import lines, write

SETTINGS = Settings(flips=6)
K = 7


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    return read_pairs([write(tmp_path_factory.mktemp("pairs") / "pairs.jsonl", lines(near=40, changes=8))])


def found_by_search(pairs: list[Pair], flips: int) -> list[bool]:
    """Return for each page of a near-duplicate pair within k bits if a lookup with it finds the other page."""
    search, signatures, found = Psm(simulated_model(), SETTINGS.header_bits, flips, K), Signatures(), []
    for pair in pairs:
        a, b = signatures.of(pair.a).fingerprint, signatures.of(pair.b).fingerprint
        assert a is not None
        assert b is not None
        if not pair.label or hamming(a.value, b.value) > K:
            continue
        for asked, kept in ((a, b), (b, a)):
            levels = search.model.levels_of(asked.weights[None, ::-1].astype(float))
            keys, limits = search.lookups(np.array([asked.value], np.uint64), levels)
            rest = 64 - search.header
            found.append(
                any(
                    key >> rest == kept.value >> rest and (key ^ kept.value).bit_count() <= limit
                    for key, limit in zip(keys[0].tolist(), limits[0].tolist(), strict=True)
                )
            )
    return found


@pytest.mark.parametrize("flips", [1, 6, 24])
def test_it_equals_the_recall_of_the_lookups(pairs: list[Pair], flips: int) -> None:
    expected = found_by_search(pairs, flips)
    (recall,) = psm_recall(pairs, replace(SETTINGS, flips=flips), [K])
    assert (recall.k, recall.pairs, recall.flips) == (K, len(expected) // 2, flips)
    # Equally likely flips may come in another order, so the result may differ by a pair at the last flip.
    assert recall.simulated == pytest.approx(np.mean(expected), abs=0.03)
    assert 0.1 < recall.simulated < 1
    assert abs(recall.fitted - recall.simulated) < 0.2


def test_the_reported_number_of_flips_is_sufficient(pairs: list[Pair]) -> None:
    (recall,) = psm_recall(pairs, SETTINGS, [K])
    assert recall.simulated < 0.95
    assert np.mean(found_by_search(pairs, recall.simulated_flips + 1)) >= 0.93
    assert np.mean(found_by_search(pairs, recall.simulated_flips // 2)) < 0.95


def test_too_few_near_pairs_are_a_clear_error(pairs: list[Pair]) -> None:
    with pytest.raises(InvalidPair, match="within 3 bits"):
        psm_recall(pairs[:4], SETTINGS, [3])

"""Tests of estimates against theory: mean and variance over random pairs of sets at 20 resemblances."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from neardup.kernels.common.hashing import hash_each
from neardup.signatures.bands import BandFilter, choose_bands, steepest_s
from neardup.signatures.shingles import containment, resemblance
from neardup.signatures.sketch import (
    MOST,
    containment_by_sample,
    min_s,
    mips_of,
    modulus_exponent,
    resemblance_by_min_s,
    resemblance_by_mips,
    resemblance_by_sample,
    sample_of,
    super_shingles,
)
from tests.support import naive

PAIRS = 300
UNION = 600
RESEMBLANCES = [i / 20 for i in range(20)]


def pair(seed: int, shared: int, union: int = UNION) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return two random sets of about equal size with `shared` elements of their union in common."""
    values = hash_each(np.arange(union, dtype=np.uint64) + np.uint64(seed * union), np.uint64(seed))
    half = shared + (union - shared) // 2
    return values[:half], np.concatenate([values[:shared], values[half:]])


def moments(estimates: list[float], truth: float) -> tuple[float, float]:
    return float(np.mean(estimates)) - truth, float(np.var(estimates))


@pytest.mark.parametrize("truth", RESEMBLANCES)
def test_mips_are_unbiased_with_the_variance_of_sampling(truth: float) -> None:
    m = 128
    pairs = [pair(seed, round(truth * UNION)) for seed in range(PAIRS)]
    error, variance = moments([resemblance_by_mips(mips_of(a, m), mips_of(b, m)) for a, b in pairs], truth)
    expected = truth * (1 - truth) / m
    # Four standard errors of the mean. Bins are drawn without replacement, so the variance is at most binomial, and
    # the estimate of a variance from this number of pairs deviates by up to a third.
    assert abs(error) < 4 * math.sqrt(expected / PAIRS) + 1e-9
    assert variance < 1.35 * expected + 1e-9


@pytest.mark.parametrize("truth", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("union", [30, 100, 300])
def test_densified_mips_of_short_documents_are_unbiased(truth: float, union: int) -> None:
    m = 128
    pairs = [pair(seed, round(truth * union), union) for seed in range(1500)]
    exact = round(truth * union) / union
    error, variance = moments([resemblance_by_mips(mips_of(a, m), mips_of(b, m)) for a, b in pairs], exact)
    # Most bins are densified, so there are fewer independent samples than m, but at least one per element of the union.
    assert abs(error) < 4 * math.sqrt(variance / len(pairs))
    assert variance < 2.5 * exact * (1 - exact) / min(m, union)


def test_one_pass_agrees_with_many_permutations() -> None:
    m, truth = 64, 0.6
    once, many = [], []
    for seed in range(40):
        a, b = pair(seed, 60, 100)
        once.append(resemblance_by_mips(mips_of(a, m), mips_of(b, m)))
        left, right = naive.mips(a.tolist(), m), naive.mips(b.tolist(), m)
        many.append(sum(x == y for x, y in zip(left, right, strict=True)) / m)
    allowed = 4 * math.sqrt(truth * (1 - truth) / m / 40)
    assert abs(np.mean(once) - truth) < 2 * allowed
    assert abs(np.mean(many) - truth) < allowed


@pytest.mark.parametrize("truth", RESEMBLANCES)
def test_min_s_is_unbiased(truth: float) -> None:
    s = 84
    pairs = [pair(seed, round(truth * UNION)) for seed in range(PAIRS)]
    error, variance = moments([resemblance_by_min_s(min_s(a, s), min_s(b, s), s) for a, b in pairs], truth)
    expected = truth * (1 - truth) / s
    assert abs(error) < 4 * math.sqrt(expected / PAIRS) + 1e-9
    assert variance < 1.35 * expected + 1e-9


@pytest.mark.parametrize("truth", RESEMBLANCES)
def test_samples_estimate_resemblance_and_containment(truth: float) -> None:
    pairs = [pair(seed, round(truth * UNION)) for seed in range(PAIRS)]
    samples = [(sample_of(a), sample_of(b)) for a, b in pairs]
    alike = [resemblance_by_sample(a, b) for a, b in samples]
    inside = [containment_by_sample(a, b) for a, b in samples]
    sampled = UNION / 2 ** modulus_exponent(pairs[0][0].size)
    for estimates, exact, size in (
        (alike, resemblance(*pairs[0]), sampled),
        (inside, containment(*pairs[0]), pairs[0][0].size / UNION * sampled),
    ):
        known = [estimate for estimate in estimates if estimate is not None]
        error, variance = moments(known, exact)
        expected = exact * (1 - exact) / size
        assert abs(error) < 4 * math.sqrt(1.2 * expected / PAIRS) + 1e-9
        assert variance < 1.5 * expected + 1e-9


@pytest.mark.parametrize("size", [1, 60, 100, 101, 199, 200, 201, 1000, 5000, 30_000])
def test_samples_have_50_to_100_elements_at_any_length(size: int) -> None:
    expected = size / 2 ** modulus_exponent(size)
    assert expected <= MOST
    assert size <= MOST or expected > MOST / 2
    values = hash_each(np.arange(size, dtype=np.uint64), np.uint64(5))
    assert abs(sample_of(values).values.size - expected) <= 4 * math.sqrt(expected)


def test_a_short_document_in_a_long_one() -> None:
    long = hash_each(np.arange(2000, dtype=np.uint64), np.uint64(5))
    a, b = sample_of(long[:400]), sample_of(long)
    assert containment_by_sample(a, b) == 1.0
    assert containment_by_sample(b, a) == pytest.approx(0.2, abs=0.15)
    assert containment_by_sample(sample_of(long[:0]), b) is None


def test_only_similar_documents_share_super_shingles() -> None:
    def share(shared: int) -> int:
        a, b = (super_shingles(min_s(values, 84), 6) for values in pair(1, shared, 3000))
        return np.intersect1d(a, b).size

    assert share(2940) > 0
    assert share(1000) == 0


def test_the_figures_of_broder_2000_for_6_14_2() -> None:
    chosen = BandFilter(6, 14, 2)
    # The paper states "less than 0.01" above 97.5 %. At 97.5 % itself it is 0.0107, and from 97.6 % on it is less.
    assert 1 - chosen.acceptance(0.975) == pytest.approx(0.01, abs=0.001)
    assert 1 - chosen.acceptance(0.976) < 0.01
    assert 1 - chosen.acceptance(0.99) < 0.00022
    assert chosen.acceptance(0.77) < 0.01
    assert chosen.acceptance(0.5) < 0.6e-7
    assert chosen.threshold() == pytest.approx(0.909, abs=0.0005)
    assert 1 / steepest_s(0.931) == pytest.approx(1 / 14, abs=0.0005)
    for x in (0.1, 0.5, 0.9, 0.95, 1.0):
        assert chosen.acceptance(x) == pytest.approx(naive.acceptance(6, 14, 2, x))


def test_the_example_of_a_missed_pair_in_the_lecture() -> None:
    assert 1 - BandFilter(k=20, s=5).acceptance(0.8) == pytest.approx(3.56e-4, rel=0.01)


@pytest.mark.parametrize("truth", [0.6, 0.7, 0.8, 0.9])
def test_the_share_of_common_bands_follows_the_curve(truth: float) -> None:
    bands = BandFilter(k=16, s=8)
    met = 0
    for seed in range(PAIRS):
        a, b = (bands.keys(mips_of(values, 128)) for values in pair(seed, round(truth * 2000), 2000))
        met += bool((a == b).any())
    expected = bands.acceptance(truth)
    assert abs(met / PAIRS - expected) < 4 * math.sqrt(expected * (1 - expected) / PAIRS) + 0.02


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.85, 0.95])
def test_the_curve_of_chosen_bands_is_steepest_at_the_threshold(threshold: float) -> None:
    chosen = choose_bands(128, threshold)
    assert chosen.k * chosen.s <= 128
    assert chosen.threshold() == pytest.approx(threshold, abs=0.06)
    careful = choose_bands(128, threshold, missed_weight=0.9)
    assert careful.acceptance(threshold) >= chosen.acceptance(threshold)

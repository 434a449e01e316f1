"""Tests that settings chosen on some pairs are evaluated on others."""

import numpy as np
import pytest

from neardup.errors import InvalidPair
from neardup.evaluation.confusion import quality
from neardup.evaluation.crossvalidation import FOLDS, can_fold, choose_best, folds, out_of_fold


def test_groups_stay_in_one_fold_and_labels_are_distributed() -> None:
    label = np.arange(60) % 3 == 0
    group = np.arange(60) // 2
    for fold in folds(label, group, repetitions=3, seed=1):
        assert set(fold) == set(range(FOLDS))
        assert all(len(set(fold[group == each])) == 1 for each in set(group))
        assert all(label[fold == number].any() and not label[fold == number].all() for number in range(FOLDS))


def test_too_few_pairs_are_refused() -> None:
    label = np.array([True] * 4 + [False] * 20)
    assert not can_fold(label, np.arange(24))
    with pytest.raises(InvalidPair, match=r"at least 5 groups of near-duplicates .* got 4"):
        list(folds(label, np.arange(24)))


def test_the_best_variant_with_enough_precision_is_chosen() -> None:
    label = np.array([1, 1, 1, 1, 0, 0], bool)
    rows = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0]], bool)
    assert choose_best(label, rows) == 0
    assert choose_best(label, rows, least_precision=0.7) == 1
    assert choose_best(label, rows, least_precision=0.9) == 2
    assert choose_best(label, rows[:2], least_precision=0.9) == 1  # none is precise enough: choose the most precise


def test_a_choice_among_noise_scores_as_noise() -> None:
    """The best of 2000 random variants scores well on the pairs that chose it, but not on other pairs."""
    rng = np.random.default_rng(5)
    label = rng.random(100) < 0.5
    rows = rng.random((2000, 100)) < 0.5
    fitted = rows[choose_best(label, rows)]
    honest, picks = out_of_fold(label, rows, np.arange(100), repetitions=4)
    assert quality(label, fitted, np.arange(100)).precision.value > 0.6
    assert abs(quality(label, honest, np.arange(100)).precision.value - label.mean()) < 0.1
    assert picks.shape == (4, FOLDS)
    assert np.array_equal(honest, out_of_fold(label, rows, np.arange(100), repetitions=4)[0])

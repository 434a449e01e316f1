"""Tests of precision, recall and F1 with their intervals against values computed by hand."""

import math

import numpy as np
import pytest

from neardup.evaluation.confusion import quality

# 5 duplicates, of which 3 are found; 2 false alarms among 5 other pairs
LABEL = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0], bool)
CALLED = np.array([1, 1, 1, 0, 0, 1, 1, 0, 0, 0], bool)
ALONE = np.arange(10)


def test_a_confusion_matrix_by_hand() -> None:
    found = quality(LABEL, CALLED, ALONE)
    assert (found.pairs, found.duplicates, found.found, found.false_alarms) == (10, 5, 3, 2)
    assert found.precision.value == pytest.approx(3 / 5)
    assert found.recall.value == pytest.approx(3 / 5)
    assert found.f1.value == pytest.approx(2 * 3 / (2 * 3 + 2 + 2))
    assert found.precision.low < 3 / 5 < found.precision.high


def test_repetitions_are_averaged() -> None:
    perfect = quality(LABEL, np.array([CALLED, LABEL]), ALONE)
    assert perfect.recall.value == pytest.approx((3 / 5 + 1) / 2)
    assert perfect.found == 4


def test_perfect_results_have_narrow_intervals() -> None:
    found = quality(LABEL, LABEL, ALONE)
    assert (found.f1.value, found.f1.low, found.f1.high) == (1, 1, 1)


def test_without_positives_there_is_no_precision() -> None:
    found = quality(LABEL, np.zeros(10, bool), ALONE)
    assert math.isnan(found.precision.value)
    assert found.recall.value == 0
    assert found.as_dict()["precision"] == {"value": None, "low": None, "high": None}


def test_intervals_depend_only_on_the_seed() -> None:
    assert quality(LABEL, CALLED, ALONE, seed=3) == quality(LABEL, CALLED, ALONE, seed=3)
    assert quality(LABEL, CALLED, ALONE, seed=3) != quality(LABEL, CALLED, ALONE, seed=4)


def test_fewer_groups_make_wider_intervals() -> None:
    """Ten repetitions of ten pairs are no more evidence than ten pairs."""
    label, called = np.tile(LABEL, 10), np.tile(CALLED, 10)
    apart = quality(label, called, np.arange(100)).recall
    together = quality(label, called, np.tile(ALONE, 10)).recall
    assert together.high - together.low > 2 * (apart.high - apart.low)

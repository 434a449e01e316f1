"""Tests of recall and its confidence interval, as metrics."""

import numpy as np
import pytest
from prometheus_client import REGISTRY

from neardup.monitoring.recall import Recall, wilson


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"neardup_recall_{name}", labels)


# From a published table: Newcombe 1998, "Two-sided confidence intervals for the single proportion", method 3.
@pytest.mark.parametrize(
    ("found", "total", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_the_wilson_interval(found: int, total: int, low: float, high: float) -> None:
    interval = wilson(found, total)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    assert interval.estimate == found / total


def test_without_checks_the_interval_is_everything() -> None:
    assert wilson(0, 0) == (0.0, 0.0, 1.0)
    assert wilson(7, 7).high == 1.0


def test_the_interval_contains_the_true_share_19_times_out_of_20() -> None:
    rng = np.random.default_rng(3)
    for truth in (0.5, 0.9, 0.97):
        held = [
            interval.low <= truth <= interval.high
            for interval in (wilson(int(found), 150) for found in rng.binomial(150, truth, 2000))
        ]
        assert 0.92 < np.mean(held) < 0.985


def test_gauges_cover_the_last_checks_and_counters_cover_all() -> None:
    recall = Recall("shadow", 77, last=4)
    counted = value("checks_total", source="shadow", result="missed") or 0
    assert value("ratio", source="shadow", partition="77") is None
    for found in (False, False, True, True, True, True):
        recall.check(found)
    assert value("ratio", source="shadow", partition="77") == 1.0
    recall.check(False)
    assert value("ratio", source="shadow", partition="77") == 0.75
    low, high = (value(f"{name}_ratio", source="shadow", partition="77") for name in ("low", "high"))
    assert (low, high) == (wilson(3, 4).low, wilson(3, 4).high)
    assert value("checks_total", source="shadow", result="missed") == counted + 3
    recall.close()
    assert value("ratio", source="shadow", partition="77") is None

"""Tests of the cost and the recall of presets."""

from pathlib import Path

import pytest

from neardup.evaluation.pairs import read_pairs
from neardup.evaluation.preset_costs import preset_costs
from neardup.sample import sample_crawl
from neardup.settings import PRESETS
from tests.evaluation.made import lines, write


def test_presets_with_higher_recall_cost_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_PROCESSES", "1")
    pairs = read_pairs([write(tmp_path / "pairs.jsonl", lines(changes=10))])
    costs = preset_costs(pairs, list(sample_crawl(400, seed=3, mean_bytes=8000)))
    assert [each.preset for each in costs] == list(PRESETS)
    for figures in ([each.probes for each in costs], [each.bytes_per_page for each in costs]):
        assert figures == sorted(figures)
        assert figures[0] < figures[-1]
    recalls = [each.crawl_recall for each in costs]
    assert None not in recalls
    assert recalls == sorted(recalls)  # type: ignore[type-var]
    assert costs[0].pairs.recall.value < costs[-1].pairs.recall.value
    assert all(each.pages_per_s > 1 for each in costs)
    precisions = [each.crawl_precision for each in costs]
    assert all(each is not None and each > 0.95 for each in precisions), precisions

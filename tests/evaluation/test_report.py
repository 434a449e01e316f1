"""Tests of the evaluation of settings on pairs with a known outcome."""

import numpy as np
import pytest

from neardup.evaluation.measures import FAR, Measures, measure
from neardup.evaluation.methods import Search, accepted_by_rule, found_by_search, methods
from neardup.evaluation.pairs import Pair, read_pairs
from neardup.evaluation.plots import hits_by_resemblance, plots
from neardup.evaluation.report import Evaluation, evaluate
from neardup.evaluation.strata import strata
from neardup.matching.explain import explain
from neardup.matching.rule import Thresholds
from neardup.settings import Settings
from neardup.signatures.bands import BandFilter
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.types import Kind
from tests.evaluation.made import edited, lines, text, write


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    """Return 12 near-duplicates, 12 others, a short page, a page inside another, and two that no table finds."""
    words = text(77, 400)
    odd = [
        {"label": 1, "a": "too short", "b": "too short", "url_a": "http://x.example/", "url_b": "http://x.example/2"},
        {"label": 1, "a": " ".join(words[:150]), "b": " ".join(words)},
        {"label": 1, "a": " ".join(words[200:]), "b": " ".join(edited(words[200:], 1, 50))},
        {"label": 0, "a": "der die das und in den von " * 20, "b": "the of and to in a is that for it " * 20},
    ]
    return read_pairs([write(tmp_path_factory.mktemp("pairs") / "pairs.jsonl", lines() + odd)])


@pytest.fixture(scope="module")
def measures(pairs: list[Pair]) -> Measures:
    return measure(pairs, Signatures())


@pytest.fixture(scope="module")
def evaluation(pairs: list[Pair]) -> Evaluation:
    return evaluate(pairs, Settings())


def test_the_verdict_equals_that_of_explain(pairs: list[Pair], measures: Measures) -> None:
    settings = Settings()
    duplicates = found_by_search(measures, Search.of(settings)) & accepted_by_rule(measures, Thresholds.of(settings))
    for pair, ours in zip(pairs, duplicates, strict=True):
        ways = [explain(Signatures(), *both).verdict for both in ((pair.a, pair.b), (pair.b, pair.a))]
        assert ours == (Kind.DUPLICATE in ways), pair.id


def test_bands_of_any_layout_equal_those_of_the_signatures(pairs: list[Pair]) -> None:
    for bands in (BandFilter(16, 8), BandFilter(25, 5)):
        signatures = Signatures(SignatureOptions(bands=bands))
        counted = measure(pairs, signatures).shared_bands(bands)
        for pair, count in zip(pairs, counted, strict=True):
            a, b = signatures.of(pair.a).sketches, signatures.of(pair.b).sketches
            assert count == (0 if a is None or b is None else (a.bands == b.bands).sum())


def test_a_skipped_page_is_never_found(measures: Measures) -> None:
    assert (measures.hamming[24], measures.sketch[24], measures.same[24]) == (FAR, -1, False)
    assert measures.exact[24] == 1


def test_pages_without_spots_are_not_similar_by_spots(measures: Measures) -> None:
    assert measures.spots[0] == -1


def test_known_figures(evaluation: Evaluation) -> None:
    assert (evaluation.pairs, evaluation.duplicates) == (28, 15)
    total = evaluation.verdict.total
    assert (total.found, total.false_alarms) == (12, 0)
    assert total.recall.value == pytest.approx(12 / 15)
    assert evaluation.not_found + evaluation.refused == 3
    contained = evaluation.measures.exact_containment[25]
    assert contained == 1


def test_single_methods_are_evaluated_out_of_fold(evaluation: Evaluation) -> None:
    by_name = {each.name: each for each in evaluation.alone}
    assert set(by_name) >= {"simhash", "resemblance, exact", "resemblance, sketch", "SpotSigs", "bands"}
    exact = by_name["resemblance, exact"]
    assert exact.judged is not None
    assert exact.judged.total.f1.value > 0.9
    recalls = [point.recall for point in by_name["simhash"].curve]
    assert recalls == sorted(recalls)


def test_strata(measures: Measures) -> None:
    parts = strata(measures)
    assert {name: int(part.sum()) for name, part in parts.items() if name.startswith("length")} == {
        "length: 0 to 99 tokens": 1,
        "length: 100 to 999 tokens": 27,
    }
    assert parts["host: same"].sum() == 1
    assert parts["language: mixed"].sum() == 1
    assert not any(name.startswith("file") for name in parts)


def test_without_bands(pairs: list[Pair]) -> None:
    bare = evaluate(pairs, Settings(bands="none"))
    assert (bare.cost.bands, bare.cost.probes) == (0, 10)
    assert "bands.svg" not in plots(bare)


def test_with_too_few_pairs_only_the_verdict_is_evaluated(pairs: list[Pair]) -> None:
    few = evaluate(pairs[:3], Settings())
    assert few.verdict.total.recall.value == 1
    assert all(each.judged is None and each.curve for each in few.alone)


def test_charts(evaluation: Evaluation) -> None:
    drawn = plots(evaluation)
    assert set(drawn) == {"simhash.svg", "hamming.svg", "bands.svg"}
    assert all(each.startswith("<svg") and "NaN" not in each and "nan" not in each for each in drawn.values())


def test_measured_hits_are_drawn_at_their_mean_resemblance() -> None:
    points = hits_by_resemblance(np.array([0.11, 0.13, 1.0]), np.array([True, False, True]))
    assert points == [pytest.approx((0.12, 0.5)), (1.0, 1.0)]


def test_same_seed_same_figures(pairs: list[Pair], evaluation: Evaluation) -> None:
    assert evaluate(pairs, Settings()).as_dict() == evaluation.as_dict()
    assert evaluate(pairs, Settings(), seed=1).as_dict() != evaluation.as_dict()


def test_each_method_has_one_row_per_threshold(measures: Measures) -> None:
    for method in methods(measures, Settings()):
        assert method.predicted.shape == (method.thresholds.size, len(measures))

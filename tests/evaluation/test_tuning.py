"""Tests of the search for settings and of the figures that it reports."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from neardup.errors import InvalidPair
from neardup.evaluation.measures import measure
from neardup.evaluation.methods import Search, accepted_by_rule, found_by_search
from neardup.evaluation.pairs import Pair, read_pairs
from neardup.evaluation.tuning import Limits, Space, TuningResult, Variant, held_out, tune
from neardup.matching.rule import Thresholds
from neardup.settings import FILE_VARIABLE, Settings
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup_services.cli import main
from tests.evaluation.made import edited, lines, text, write

SMALL = Space(
    phrases=((1,), (2,)),
    weighting=("presence",),
    shingle_words=(2, 3),
    hamming=(0, 3),
    bands=("none", "16x8", "32x4"),
    near_resemblance=(0.3, 0.6, 0.9),
    contained=(1.0,),
)


def hard_lines() -> list[dict[str, object]]:
    """Return near-duplicates with a resemblance of about a third, none of which the defaults find."""
    found: list[dict[str, object]] = list(lines(0, 14, first=100))
    for number in range(14):
        words = text(5000 + number)
        found.append({"label": 1, "a": " ".join(words), "b": " ".join(edited(words, number, 36))})
    return found


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    return read_pairs([write(tmp_path_factory.mktemp("pairs") / "pairs.jsonl", hard_lines())])


@pytest.fixture(scope="module")
def tuned(pairs: list[Pair]) -> TuningResult:
    return tune(pairs, Settings(), Limits(0.9, 60), SMALL)


def test_the_search_finds_what_the_defaults_miss(tuned: TuningResult) -> None:
    assert tuned.before.recall.value < 0.3
    assert tuned.cross_validated.recall.value > 0.7
    assert sum(each.pairs for each in tuned.by_file.values()) == tuned.cross_validated.pairs
    assert tuned.chosen.bands == "32x4"
    assert tuned.chosen.near_resemblance == 0.3
    assert tuned.agreement["bands"] > 0.9


def test_predictions_are_those_of_an_evaluation(pairs: list[Pair], tuned: TuningResult) -> None:
    measures = measure(pairs, Signatures(SignatureOptions.of(Settings())))
    duplicates = found_by_search(measures, Search.of(Settings())) & accepted_by_rule(
        measures, Thresholds.of(Settings())
    )
    assert tuned.before.found == (duplicates & measures.label).sum()
    assert tuned.before.false_alarms == (duplicates & ~measures.label).sum()


def test_the_cheapest_of_equal_settings_is_chosen(tmp_path: Path) -> None:
    """Every setting finds copies, so that one table is enough."""
    easy = read_pairs([write(tmp_path / "pairs.jsonl", lines(changes=0))])
    found = tune(easy, Settings(), space=SMALL)
    assert (found.chosen.bands, found.chosen.hamming, found.probes) == ("none", 0, 1)


def test_probes_are_limited(pairs: list[Pair]) -> None:
    assert tune(pairs, Settings(), Limits(0.9, 20), SMALL).probes <= 20
    with pytest.raises(InvalidPair, match="at most 0 probes"):
        tune(pairs, Settings(), Limits(0.9, 0), SMALL)


def test_too_few_pairs_are_refused(pairs: list[Pair]) -> None:
    with pytest.raises(InvalidPair, match="label more pairs to get unbiased results"):
        tune(pairs[:12], Settings(), space=SMALL)


def test_pairs_used_for_tuning_are_refused_for_testing(pairs: list[Pair], tuned: TuningResult) -> None:
    assert held_out(pairs[:14], pairs[14:], replace(Settings(), **tuned.chosen._asdict())).recall.value > 0.7
    with pytest.raises(InvalidPair, match="remove the pair from the test pairs"):
        held_out(pairs, pairs[5:6], replace(Settings(), **tuned.chosen._asdict()))


def test_the_command_writes_a_settings_file(tmp_path: Path) -> None:
    given = write(tmp_path / "pairs.jsonl", lines(6, 6))
    other = write(tmp_path / "other.jsonl", hard_lines())
    out = tmp_path / "tuned.toml"
    done = CliRunner().invoke(main, ["tune", str(given), "--out", str(out), "--test", str(other)])
    assert done.exit_code == 0, done.output
    assert "on pairs it has not seen" in done.output
    assert "on the pairs of --test" in done.output
    assert set(tomllib.loads(out.read_text())) == set(Variant._fields)
    assert isinstance(Settings.load({FILE_VARIABLE: str(out)}), Settings)


def test_the_command_refuses_to_test_on_the_tuning_pairs(tmp_path: Path) -> None:
    given = write(tmp_path / "pairs.jsonl", lines(6, 6))
    done = CliRunner().invoke(main, ["tune", str(given), "--test", str(given)])
    assert done.exit_code == 1
    assert "remove the pair from the test pairs" in done.output


def test_json_output_is_one_object(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["tune", str(write(tmp_path / "pairs.jsonl", lines(6, 6))), "--json"])
    body = json.loads(done.output)
    assert set(body["settings"]) == set(Variant._fields)
    assert body["search"]["pairs"] == 12
    assert "test" not in body

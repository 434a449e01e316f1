"""Tests of `neardup evaluate`."""

import json
from pathlib import Path

from click.testing import CliRunner

from neardup_services.cli import main
from tests.evaluation.made import lines, write


def test_the_output_is_a_table(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one.jsonl", lines()), write(tmp_path / "two.jsonl", lines(changes=6))
    done = CliRunner().invoke(main, ["evaluate", str(one), str(two), "--plot", str(tmp_path / "plots"), "--curves"])
    assert done.exit_code == 0, done.output
    for part in ("48 pairs, 24 near-duplicates", "verdict", "rule alone", "file: one.jsonl", "SpotSigs", "probes"):
        assert part in done.output
    assert len(list((tmp_path / "plots").glob("*.svg"))) == 3


def test_json_output_is_one_object(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["evaluate", str(write(tmp_path / "pairs.jsonl", lines())), "--json"])
    assert done.exit_code == 0, done.output
    body = json.loads(done.output)
    assert body["verdict"]["f1"]["value"] == 1
    (simhash,) = [each for each in body["alone"] if each["name"] == "simhash"]
    assert [each["threshold"] for each in simhash["curve"]][:4] == [0, 1, 2, 3]


def test_too_few_pairs_for_cross_validation_are_reported(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["evaluate", str(write(tmp_path / "pairs.jsonl", lines(1, 1)))])
    assert "too few pairs for cross-validation" in done.output


def test_an_invalid_line_is_one_clear_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["evaluate", str(write(tmp_path / "pairs.jsonl", [{"label": 1}]))])
    assert done.exit_code == 1
    assert "line 1: a: expected" in done.output


def test_presets_with_higher_cost_find_more(tmp_path: Path) -> None:
    given = str(write(tmp_path / "pairs.jsonl", lines(changes=10)))
    costs, recalls = [], []
    for preset in ("fast", "default", "thorough"):
        done = CliRunner().invoke(main, ["evaluate", given, "--preset", preset, "--json"])
        body = json.loads(done.output)
        costs.append(body["cost"]["probes"])
        recalls.append(body["candidates"]["recall"]["value"])
    assert costs == sorted(costs)
    assert recalls == sorted(recalls)
    assert recalls[0] < recalls[2]


def test_there_is_a_line_per_method_and_a_column_per_file(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one.jsonl", lines()), write(tmp_path / "two.jsonl", lines(changes=6, first=50))
    done = CliRunner().invoke(main, ["evaluate", str(one), str(two), "--table"])
    assert done.exit_code == 0, done.output
    head, *rows = done.output.splitlines()
    assert head.split() == ["F1", "all", "one.jsonl", "two.jsonl"]
    assert [row.split("  ")[0] for row in rows[:3]] == ["verdict, as set", "verdict, threshold by folds", "simhash"]
    assert "1.000 (1.00 to 1.00)" in next(row for row in rows if row.startswith("resemblance, exact"))


def test_the_recall_of_the_probabilistic_search(tmp_path: Path) -> None:
    given = str(write(tmp_path / "pairs.jsonl", lines(near=30, changes=3)))
    done = CliRunner().invoke(main, ["evaluate", given, "--psm"])
    assert "recall of 24 flips, fitted" in done.output, done.output
    body = json.loads(CliRunner().invoke(main, ["evaluate", given, "--psm", "--json"]).output)
    assert [each["k"] for each in body] == sorted(each["k"] for each in body)
    assert all(0 < each["fitted"] <= 1 for each in body)


def test_only_one_view_can_be_selected(tmp_path: Path) -> None:
    given = str(write(tmp_path / "pairs.jsonl", lines(1, 1)))
    done = CliRunner().invoke(main, ["evaluate", given, "--psm", "--table"])
    assert done.exit_code == 2
    assert "expected at most one of" in done.output

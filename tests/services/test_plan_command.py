"""Tests of `neardup plan`."""

import json

import pytest
from click.testing import CliRunner

from neardup_services.commands.plan import plan


def test_the_designs_of_the_paper_are_compared() -> None:
    done = CliRunner().invoke(plan, ["--pages", "1.7e10", "--k", "3", "--memory-per-shard", "32GiB", "--json"])
    assert done.exit_code == 0, done.output
    body = json.loads(done.output)
    assert all(value > 0 for value in body["constants"].values())
    by_tables = {each["tables"]: each for each in body["options"] if each["search"] == "exact"}
    assert {4, 10, 16, 20} <= set(by_tables)
    ten = by_tables[10]
    assert (ten["least_leading"], ten["most_leading"]) == (25, 26)
    assert ten["candidates_per_probe"] == pytest.approx(512, rel=0.05)
    assert ten["messages_per_page"] == 20
    assert 80 <= ten["bytes_per_page"] <= 101
    assert 40 <= ten["bytes_per_page_compressed"] <= 42
    assert ten["shards"] == 10 * 4
    assert ten["shards_compressed"] == 10 * 2
    (psm,) = [each for each in body["options"] if each["search"] == "PSM"]
    assert psm["tables"] == 1
    assert psm["lookups"] > 10
    assert psm["messages_per_page"] > 2


def test_the_output_is_a_table() -> None:
    done = CliRunner().invoke(plan, ["--pages", "1e6"])
    assert done.exit_code == 0, done.output
    assert "exact" in done.output
    assert "PSM" in done.output


@pytest.mark.parametrize("wrong", ["many", "12", "3 parsecs"])
def test_an_invalid_size_is_a_clear_error(wrong: str) -> None:
    done = CliRunner().invoke(plan, ["--pages", "1e6", "--memory-per-shard", wrong])
    assert done.exit_code == 2
    assert "expected" in done.output

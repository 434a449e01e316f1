"""Tests of precision and recall against a known truth."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from neardup.errors import InvalidTruth, InvalidVerdict
from neardup.evaluation.score import Tally, score
from neardup.messages.verdicts import write_verdict
from neardup.sample import sample_crawl
from neardup.sample.truth import Truth, write_truth
from neardup.types import Kind, PageRef, Relation, Verdict
from neardup_services.cli import main


def truth(number: int, kind: str = "original", of: int | None = None, duplicate: bool | None = None) -> Truth:
    expected = (of is not None) if duplicate is None and kind != "large-edit" else duplicate
    return Truth(
        url=f"https://a.example/{number}",
        number=number,
        fetched_at=f"2026-01-01T00:00:{number:02}Z",
        kind=kind,
        duplicate_of=of,
        duplicate=expected,
    )


def verdict(number: int, of: int | None = None, *, revision: int = 0, partitions: int = 1) -> Verdict:
    def place(page: int) -> str:
        return f"{page % partitions}:{page // partitions}"

    url = f"https://a.example/{number}"
    fetched_at = f"2026-01-01T00:00:{number:02}Z"
    if of is None:
        return Verdict(url=url, document=place(number), fetched_at=fetched_at, verdict=Kind.UNIQUE, revision=revision)
    earlier = PageRef(f"https://a.example/{of}", place(of))
    return Verdict(
        url=url,
        document=place(number),
        fetched_at=fetched_at,
        verdict=Kind.DUPLICATE,
        revision=revision,
        duplicate_of=earlier,
        relation=Relation.NEAR,
    )


# 0 and 1 are originals; 2 is a copy of 0, 3 a copy of 1, 4 borderline, 5 skipped, 6 an original
TRUTHS = [
    truth(0),
    truth(1),
    truth(2, "ad", 0),
    truth(3, "ad", 1),
    truth(4, "large-edit", 0),
    truth(5, "skipped-type"),
    truth(6),
]
RIGHT = [verdict(0), verdict(1), verdict(2, 0), verdict(3, 1), verdict(4), verdict(6)]


def test_correct_verdicts_score_one() -> None:
    result = score(RIGHT, TRUTHS)
    assert (result.total.precision, result.total.recall, result.not_scored) == (1.0, 1.0, 2)
    assert result.kinds == {"original": Tally(pages=3), "ad": Tally(pages=2, duplicates=2, found=2)}


def test_a_missed_duplicate_lowers_recall() -> None:
    result = score([*RIGHT[:2], verdict(2), *RIGHT[3:]], TRUTHS)
    assert (result.total.precision, result.total.recall) == (1.0, 0.5)


def test_a_false_alarm_lowers_precision() -> None:
    result = score([*RIGHT[:5], verdict(6, 1)], TRUTHS)
    assert result.total.precision == pytest.approx(2 / 3)
    assert (result.total.recall, result.kinds["original"].false_alarms) == (1.0, 1)


def test_a_duplicate_in_the_wrong_group_lowers_both() -> None:
    result = score([*RIGHT[:3], verdict(3, 0), *RIGHT[4:]], TRUTHS)
    assert (result.total.precision, result.total.recall, result.total.wrong_group) == (0.5, 0.5, 1)


def test_any_page_of_the_group_is_correct() -> None:
    truths = [*TRUTHS, truth(7, "ad", 0), truth(8, "ad", 0)]
    verdicts = [*RIGHT, verdict(7, 2), verdict(8, 4)]  # another copy, and a borderline descendant
    assert score(verdicts, truths).total.recall == 1.0


def test_a_page_that_contains_one_of_the_group_is_correct() -> None:
    archive = Truth(url="https://a.example/7", number=7, fetched_at="2026-01-01T00:00:07Z", kind="archive", holds=(0,))
    truths = [*TRUTHS, archive, truth(8, "ad", 0), truth(9, "ad", 1)]
    result = score([*RIGHT, verdict(7), verdict(8, 7), verdict(9, 7)], truths)
    assert (result.total.found, result.total.wrong_group) == (3, 1)


def test_neither_borderline_nor_skipped_pages_are_scored() -> None:
    assert score([*RIGHT[:4], verdict(4, 1), verdict(5, 0), verdict(6)], TRUTHS).total == score(RIGHT, TRUTHS).total


def test_the_last_revision_counts_in_any_order() -> None:
    wrong, right = verdict(2), verdict(2, 0, revision=1)
    for pair in ([wrong, right], [right, wrong]):
        assert score([*RIGHT[:2], *pair, *RIGHT[3:]], TRUTHS).total.recall == 1.0


def test_a_page_without_verdict_is_missed() -> None:
    result = score([*RIGHT[:3], *RIGHT[4:]], TRUTHS)
    assert (result.total.without_verdict, result.total.recall) == (1, 0.5)


def test_verdicts_of_several_partitions_are_joined_by_url_and_time() -> None:
    pairs = [(0, None), (1, None), (2, 0), (3, 1), (4, None), (6, None)]
    result = score([verdict(number, of, partitions=3) for number, of in pairs], TRUTHS)
    assert (result.total.precision, result.total.recall) == (1.0, 1.0)


def test_nothing_to_score() -> None:
    result = score([], [])
    assert (result.total.precision, result.total.recall) == (None, None)


def test_the_truth_of_another_crawl_is_refused() -> None:
    with pytest.raises(
        InvalidTruth, match=r"document 0:3: expected one of 3 pages, as in the truth, got a verdict on https://a\.e"
    ):
        score(RIGHT, TRUTHS[:3])
    other = [Truth(url="https://b.example/", number=0, fetched_at="", kind="original"), *TRUTHS[1:]]
    with pytest.raises(InvalidTruth, match="use the truth of this crawl"):
        score(RIGHT, other)


@pytest.mark.parametrize("truths", [TRUTHS[1:], [*TRUTHS, TRUTHS[0]], [truth(0, "ad", 0)], [truth(0, "ad", 7)]])
def test_a_truth_with_gaps_or_forward_references_is_refused(truths: list[Truth]) -> None:
    with pytest.raises(InvalidTruth, match="expected"):
        score([], truths)


def test_inconsistent_verdicts_are_refused() -> None:
    with pytest.raises(InvalidVerdict, match="partition:offset, got 'x'"):
        score([Verdict(url="u", document="x", fetched_at=None, verdict=Kind.UNIQUE, revision=0)], TRUTHS)
    with pytest.raises(InvalidVerdict, match="expected a verdict on 0:0, to which it refers, got none"):
        score([verdict(2, 0)], TRUTHS)
    with pytest.raises(InvalidVerdict, match="expected a duplicate with duplicate_of"):
        score(
            [Verdict(url="https://a.example/0", document="0:0", fetched_at=None, verdict=Kind.DUPLICATE, revision=0)],
            TRUTHS,
        )


# The command


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    verdicts, truths = tmp_path / "verdicts.jsonl", tmp_path / "truth.jsonl"
    verdicts.write_bytes(b"".join(write_verdict(each, "json") + b"\n" for each in RIGHT))
    truths.write_bytes(b"".join(map(write_truth, TRUTHS)))
    return verdicts, truths


def test_the_command_prints_a_table(files: tuple[Path, Path]) -> None:
    done = CliRunner().invoke(main, ["score", *map(str, files)])
    assert done.exit_code == 0
    rows = {line.split()[0]: line.split()[1:] for line in done.output.splitlines()}
    assert rows["all"] == ["5", "2", "2", "0", "0", "0", "1.0000", "1.0000"]
    assert rows["original"] == ["3", "0", "0", "0", "0", "0", "-", "-"]
    assert "2 pages were not scored" in done.output


def test_the_command_prints_json(files: tuple[Path, Path]) -> None:
    body = json.loads(CliRunner().invoke(main, ["score", *map(str, files), "--json"]).output)
    assert (body["all"]["precision"], body["all"]["recall"], body["not_scored"]) == (1.0, 1.0, 2)
    assert body["kinds"]["ad"]["found"] == 2
    assert body["kinds"]["original"]["recall"] is None


@pytest.mark.parametrize("bad", [b"words", b"{}", b'{"verdict": 1', b"\x80", b"[]"])
def test_a_malformed_line_is_named_by_file_and_line(files: tuple[Path, Path], bad: bytes) -> None:
    for path in files:
        good = path.read_bytes()
        path.write_bytes(good + b"\n" + bad + b"\n")
        done = CliRunner().invoke(main, ["score", *map(str, files)])
        assert done.exit_code == 1
        line = good.count(b"\n") + 2
        assert f"{path.name}, line {line}: " in done.output.replace("\n", "")
        path.write_bytes(good)


def test_perfect_verdicts_on_a_sample_crawl_score_one() -> None:
    truths = [made.truth for made in sample_crawl(500, 3, 8000)]
    verdicts = [
        Verdict(url=each.url, document=f"0:{each.number}", fetched_at=each.fetched_at, verdict=Kind.SKIPPED, revision=0)
        if each.skipped
        else Verdict(
            url=each.url, document=f"0:{each.number}", fetched_at=each.fetched_at, verdict=Kind.UNIQUE, revision=0
        )
        if not each.duplicate
        else Verdict(
            url=each.url,
            document=f"0:{each.number}",
            fetched_at=each.fetched_at,
            verdict=Kind.DUPLICATE,
            revision=0,
            duplicate_of=PageRef("", f"0:{each.duplicate_of}"),
        )
        for each in truths
    ]
    result = score(verdicts, truths)
    assert (result.total.precision, result.total.recall) == (1.0, 1.0)


def test_same_host_and_cross_host_are_distinguished() -> None:
    def at(host: str, number: int, of: int | None = None) -> Truth:
        return Truth(
            url=f"https://{host}.example/{number}",
            number=number,
            fetched_at="",
            kind="ad" if of is not None else "original",
            duplicate_of=of,
            duplicate=of is not None,
        )

    def expected(host: str, number: int, of: tuple[str, int] | None = None) -> Verdict:
        url = f"https://{host}.example/{number}"
        if of is None:
            return Verdict(url=url, document=f"0:{number}", fetched_at="", verdict=Kind.UNIQUE, revision=0)
        earlier = PageRef(f"https://{of[0]}.example/{of[1]}", f"0:{of[1]}")
        return Verdict(
            url=url,
            document=f"0:{number}",
            fetched_at="",
            verdict=Kind.DUPLICATE,
            revision=0,
            duplicate_of=earlier,
            relation=Relation.NEAR,
        )

    truths = [at("a", 0), at("a", 1, 0), at("b", 2, 0), at("b", 3), at("a", 4)]
    verdicts = [
        expected("a", 0),
        expected("a", 1, ("a", 0)),
        expected("b", 2),
        expected("b", 3, ("b", 2)),
        expected("a", 4),
    ]
    result = score(verdicts, truths)
    assert result.hosts == {
        "same host": Tally(pages=2, duplicates=1, found=1, false_alarms=1),
        "cross host": Tally(pages=1, duplicates=1),
    }

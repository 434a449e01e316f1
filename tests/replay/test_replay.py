"""Tests of replay: the same settings change no decision, and other settings decide like a fresh run with them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from neardup import Deduplicator
from neardup.errors import InputError, SettingsError, WrongState
from neardup.evaluation.pairs import read_pairs
from neardup.offline.corpus.columns import ColumnStore, gather
from neardup.offline.corpus.corpus import Corpus
from neardup.replay.differences import differences
from neardup.replay.outcome import NOT_SETTLED, Outcome
from neardup.replay.replaying import ReplayResult, replay_pages, replay_sketches
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup.types import Page
from neardup_services.cli import main

SETTINGS = Settings(tables=4, bands="12x8", near_resemblance=0.75, processes=1)
PAGES = [made.page for made in sample_crawl(400, seed=9, mean_bytes=8000)]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the state of a run over all pages, interrupted once."""
    place = tmp_path_factory.mktemp("made") / "state"
    for part in (PAGES[:250], PAGES[250:]):
        with Deduplicator(place, settings=SETTINGS) as known:
            known.add_all(part)
    return place


@pytest.fixture
def corpus(state: Path, tmp_path: Path) -> ColumnStore:
    return gather(Corpus(str(state / "corpus")), tmp_path / "documents")


def fresh(settings: Settings) -> Outcome:
    """Return the decisions of a fresh run, by number of the page."""
    outcome = Outcome.empty(len(PAGES))
    with Deduplicator(settings=settings) as known:
        outcome.record(known.add_all(PAGES))
    return outcome


def by_document(replayed: ReplayResult) -> Outcome:
    """Return the replayed outcome by number of the page instead of the place among settled documents."""
    numbers = np.array([int(page.document.split(":")[1]) for page in replayed.pages])
    found, now = Outcome.empty(len(PAGES)), replayed.now
    found.relation[numbers] = now.relation
    found.match[numbers] = np.where(now.match >= 0, numbers[now.match], now.match)
    return found


def test_the_same_settings_change_no_decision(corpus: ColumnStore, tmp_path: Path) -> None:
    replayed = replay_sketches(corpus, SETTINGS, tmp_path / "stages")
    found = differences(replayed.was, replayed.now)
    assert (found.count, found.still_duplicates, found.was) == (0, {}, found.now)
    assert found.pages == len(corpus) > 350
    assert found.now["near"] > 20


@pytest.mark.parametrize(
    "other",
    [
        {"near_resemblance": 0.45},
        {"near_resemblance": 0.95, "contained": 0.5},
        {"bands": "25x5", "hamming": 0, "tables": 1},
        {"bands": "none"},
    ],
)
def test_other_settings_decide_like_a_fresh_run_with_them(
    other: dict[str, object], corpus: ColumnStore, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, **other)  # type: ignore[arg-type]
    replayed, expected = replay_sketches(corpus, settings, tmp_path / "stages"), fresh(settings)
    assert differences(replayed.was, replayed.now).count
    found = by_document(replayed)
    assert np.array_equal(found.relation, expected.relation)
    assert np.array_equal(found.match, expected.match)


def test_settings_that_change_signatures_are_replayed_from_the_pages(corpus: ColumnStore, tmp_path: Path) -> None:
    settings = replace(SETTINGS, shingle_words=1, main_content=True)
    replayed, expected = replay_pages(corpus, PAGES, settings, tmp_path / "stages"), fresh(settings)
    found = differences(replayed.was, replayed.now)
    assert found.count
    known = replayed.now.relation.size  # skipped pages may follow the last settled document
    assert np.array_equal(replayed.now.relation, expected.relation[:known])
    assert np.array_equal(replayed.now.match, expected.match[:known])
    assert (expected.relation[known:] == NOT_SETTLED).all()


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"shingle_words": 4}, "shingle_words .expected shingles-3"),
        ({"weighting": "tf", "main_content": True}, "main_content .*weighting"),
        ({"page_tokens": 1000}, "page_tokens"),
        ({"search": "probabilistic"}, "search: expected exact"),
    ],
)
def test_settings_that_need_the_pages_are_named(
    other: dict[str, object], named: str, corpus: ColumnStore, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, **other)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=named):
        replay_sketches(corpus, settings, tmp_path / "stages")


def test_pages_that_differ_from_those_of_the_state_are_refused(corpus: ColumnStore, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="got 100"):
        replay_pages(corpus, PAGES[:100], SETTINGS, tmp_path / "few")
    with pytest.raises(InputError, match=r"page 1: expected http.* the same order"):
        replay_pages(corpus, [PAGES[0], *PAGES[2:]], SETTINGS, tmp_path / "others")


def test_a_corpus_without_the_original_of_a_duplicate_is_refused(corpus: ColumnStore, tmp_path: Path) -> None:
    torn = np.array(corpus.match)
    torn[:] = 7
    corpus.match = torn
    with pytest.raises(WrongState, match=r"expected the document that it duplicates, \[7, 7, 7\]"):
        replay_sketches(corpus, SETTINGS, tmp_path / "stages")


# The command


def run(*arguments: object) -> str:
    environment = {"NEARDUP_TABLES": "4", "NEARDUP_BANDS": "12x8", "NEARDUP_PROCESSES": "1"}
    done = CliRunner().invoke(main, ["replay", *map(str, arguments)], env=environment)
    assert done.exit_code == 0, done.output
    return done.stdout


def write_pages(path: Path, pages: list[Page]) -> Path:
    lines = [{"url": page.url, "html": page.content.decode("latin-1"), "charset": "utf-8"} for page in pages]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_the_command_reports_changes_and_leaves_the_state_unchanged(state: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in sorted(state.rglob("*"))}
    other = tmp_path / "other.toml"
    other.write_text("near_resemblance = 0.45\n")
    shown = run(state, "--settings", other, "--examples", 1)
    body = json.loads(run(state, "--settings", other, "--examples", 1, "--json"))
    assert f"unique → near: {body['changes'][0]['pages']}" in shown
    assert body["different"] == sum(change["pages"] for change in body["changes"]) > 1
    (example,) = [each for each in body["examples"] if (each["was"], each["now"]) == ("unique", "near")]
    assert 0.45 <= example["resemblance"] < 0.75
    assert example["page"]["url"] in shown
    assert example["other"]["url"] in shown
    assert {path: path.stat().st_mtime_ns for path in sorted(state.rglob("*"))} == before


def test_a_file_given_as_an_option_wins_over_variables(state: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('near_resemblance = 0.75\nbands = "none"\n')
    assert json.loads(run(state, "--settings", other, "--json"))["different"]
    other.write_text("near_resemblance = 0.75\n")
    assert not json.loads(run(state, "--settings", other, "--json"))["different"]


def test_differences_become_pairs_that_can_be_labelled_and_evaluated(tmp_path: Path) -> None:
    pages = write_pages(tmp_path / "pages.jsonl", PAGES[:150])
    settings = replace(SETTINGS, near_resemblance=0.95)
    with Deduplicator(tmp_path / "state", settings=settings) as known:
        known.add_all([Page(p.url, html=p.content.decode("latin-1").encode(), charset="utf-8") for p in PAGES[:150]])
    out = tmp_path / "pairs.jsonl"
    run(tmp_path / "state", "--pages", pages, "--out", out)
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert lines
    for place, line in enumerate(lines):
        assert (line["label"], line["was"], line["now"]) == (None, "unique", "near")
        line["label"] = 1 if place else None  # the first is left open
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    pairs = read_pairs([out])
    assert len(pairs) == len(lines) - 1
    assert pairs[0].b.url == lines[1]["b"]["url"]
    assert pairs[0].same_host is not None
    run(tmp_path / "state", "--out", out)  # from sketches, so without text
    assert all(set(json.loads(line)["a"]) == {"url"} for line in out.read_bytes().splitlines())


def test_a_directory_without_a_corpus_is_one_clear_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["replay", str(tmp_path)])
    assert done.exit_code == 1
    assert "expected a state directory with a corpus" in done.output

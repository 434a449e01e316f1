"""Tests of the whole offline pass: its results, in one run or in several, with and without interruptions."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import StateError, WrongState
from neardup.matching.rule import Thresholds
from neardup.messages.settled import Settled
from neardup.offline.corpus.corpus import Corpus
from neardup.offline.layout import source_directory
from neardup.offline.pairs.sources import make_source
from neardup.offline.passes.recluster import recluster, reset_pass
from neardup.types import Document, Relation
from tests.offline.made_runs import (
    AllPairs,
    add_file,
    clusters_in,
    match_of,
    options,
    results_in,
    rows_in,
    run,
    settled,
)
from tests.support.documents import document, shingles


def chain(length: int, *, step: int = 50, size: int = 200) -> list[Document]:
    """Return documents with a sliding window of shingles: each resembles the next by .6, and later ones less."""
    stream = shingles(1, size + step * length)
    return [document(number, stream[number * step : number * step + size]) for number in range(length)]


def test_a_chain_does_not_snowball(tmp_path: Path) -> None:
    thresholds = Thresholds(resemblance=0.5)
    one = run(tmp_path / "one", settled(chain(12)), thresholds=thresholds)
    assert (one.transitive_clusters, one.transitive_largest) == (1, 12)
    assert one.clusters >= 4
    assert one.largest <= 4
    other = run(tmp_path / "other", settled(chain(12)), thresholds=thresholds, rule="transitive")
    assert (other.clusters, other.largest) == (1, 12)
    assert set(clusters_in(tmp_path / "other").values()) == {"0:0"}


def test_pages_with_the_same_running_text_are_a_cluster_although_their_sketches_differ(tmp_path: Path) -> None:
    corpus = Corpus(str(tmp_path / "corpus"))
    add_file(corpus, settled([document(number, number) for number in range(4)]))
    # By spots, 0 resembles 1, 1 resembles 2, and 2 resembles 3.
    spots = AllPairs(lambda a, b: 0.9 if b == a + 1 else 0.1)
    spots.name = "spots"
    recluster(corpus, tmp_path / "out", options(pair_sources=("spots",)), [spots])
    # 1 resembles 0, which is the first of its cluster; 2 does not.
    assert clusters_in(tmp_path) == {"0:0": "0:0", "0:1": "0:0", "0:2": "0:2", "0:3": "0:2"}


def test_copies_near_and_contained_documents_are_reported_correctly(tmp_path: Path) -> None:
    text = shingles(1, 400)
    first = document(0, text, content="a", tokens="a")
    some = [
        first,
        document(1, text, content="a", tokens="a"),
        document(2, text, tokens="a"),
        document(3, text),
        document(4, np.concatenate([text[:370], shingles(2, 30)])),
        document(5, text[:150]),
        document(6, 7),
    ]
    report = run(tmp_path, settled(some, {1: match_of(first, Relation.IDENTICAL)}))
    rows = rows_in(tmp_path, "clusters")
    assert [row["relation"] for row in rows] == [
        "first",
        "identical",
        "same-text",
        "same-shingles",
        "near",
        "first",
        "first",
    ]
    assert [row["cluster"] for row in rows] == ["0:0"] * 5 + ["0:5", "0:6"]
    assert [row["cluster_size"] for row in rows] == [5] * 5 + [1, 1]
    assert {row["representative_url"] for row in rows[:5]} == {first.url}
    [contained] = rows_in(tmp_path, "contained")[:1]
    assert (contained["document"], contained["container"]) == ("0:5", "0:0")
    assert contained["containment"] >= 0.9
    assert [(row["a"], row["b"], row["sources"]) for row in rows_in(tmp_path, "edges")] == [("0:0", "0:4", "shingles")]
    assert (report.identical, report.same_text, report.same_shingles, report.near) == (1, 1, 1, 1)
    assert (report.documents, report.new_documents, report.clusters, report.largest) == (7, 7, 3, 5)
    assert report.sizes == {1: 2, 5: 1}
    overturned = {row["document"]: row for row in rows_in(tmp_path, "overturned")}
    # The stream had already settled 0:1 as a duplicate.
    assert {name: row["relation"] for name, row in overturned.items()} == {
        "0:2": "same-text", "0:3": "same-shingles", "0:4": "near", "0:5": "contained",
    }  # fmt: skip
    assert {row["duplicate_of"] for row in overturned.values()} == {"0:0"}
    assert {row["revision"] for row in overturned.values()} == {2}
    assert report.overturned == 4


def test_a_copy_without_a_sketch_may_precede_the_document_with_the_sketch(tmp_path: Path) -> None:
    first = document(1, 1, tokens="a")
    copy = document(2, 1, tokens="a")
    light = settled([copy], {2: match_of(first, Relation.SAME_TEXT)})
    run(tmp_path, light + settled([document(3, 1)]))
    assert clusters_in(tmp_path) == {"0:2": "0:2", "0:3": "0:2"}
    run(tmp_path, settled([first]))
    assert clusters_in(tmp_path) == {"0:1": "0:1", "0:2": "0:1", "0:3": "0:1"}


# Several runs

texts = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))


@st.composite
def crawls(draw: st.DrawFn) -> list[list[Settled]]:
    """Generate documents with various resemblances, some of them copies, in batches and in random order."""
    count = draw(st.integers(2, 14))
    places = draw(st.permutations(range(count)))
    some = []
    for place in places:
        parts = draw(texts)
        # Two texts for each set of shingles, and two contents for each text.
        text = draw(st.sampled_from([f"{parts} 0", f"{parts} 1", f"{place}"]))
        # The same bytes may be decoded differently, so equal bytes do not imply equal text.
        content = draw(st.sampled_from([f"{text} 0", f"{place}", f"{place}", "read otherwise"]))
        longer = draw(st.booleans())
        body = np.concatenate([shingles(100 * slot + part, 60) for slot, part in enumerate(parts)])
        if longer and text == f"{place}":
            body = np.concatenate([body, shingles(9000 + parts[0], 600)])
        some.append(document(place, body, tokens=text, content=content))
    firsts: dict[bytes, Document] = {}
    for each in sorted(some, key=lambda each: each.id):
        firsts.setdefault(each.checksums.tokens, each)
    # A copy may arrive without its sketch, as in the stream.
    matches = {
        each.id.offset: match_of(firsts[each.checksums.tokens], Relation.SAME_TEXT)
        for each in some
        if firsts[each.checksums.tokens] is not each and draw(st.booleans())
    }
    batches = draw(st.integers(2, 5))
    where = [draw(st.integers(0, batches - 1)) for _ in some]
    return [
        settled([each for each, at in zip(some, where, strict=True) if at == batch], matches)
        for batch in range(batches)
    ]


@settings(max_examples=60, deadline=None)
@given(crawls(), st.sampled_from(["representative", "transitive"]), st.sampled_from([0.3, 0.5, 0.65]))
def test_runs_over_parts_have_the_results_of_one_run_over_all(
    batches: list[list[Settled]], rule: str, threshold: float
) -> None:
    changes = {"rule": rule, "thresholds": Thresholds(threshold, 0.8)}
    with TemporaryDirectory() as name:
        directory = Path(name)
        run(directory / "parts", *filter(None, batches), **changes)
        run(directory / "whole", [each for batch in batches for each in batch], **changes)
        assert results_in(directory / "parts") == results_in(directory / "whole")


@settings(max_examples=15, deadline=None)
@given(crawls())
def test_sources_of_pairs_also_resume(batches: list[list[Settled]]) -> None:
    names = ("shingles", "hamming", "bands", "supers", "spots")
    changes = options(pair_sources=names)
    with TemporaryDirectory() as name:
        for part in ("parts", "whole"):
            directory = Path(name) / part
            corpus, out = Corpus(str(directory / "corpus")), directory / "out"
            whole = [[each for batch in batches for each in batch]]
            for batch in filter(None, batches if part == "parts" else whole):
                add_file(corpus, batch)
                sources = [make_source(each, source_directory(out, each), changes) for each in names]
                recluster(corpus, out, changes, sources)
        assert results_in(Path(name) / "parts") == results_in(Path(name) / "whole")


def test_followers_of_a_document_that_is_no_longer_kept_get_new_leaders(tmp_path: Path) -> None:
    stream = shingles(1, 500)
    windows = {1: (100, 400), 2: (50, 350), 3: (115, 415), 4: (160, 460)}
    some = [document(place, stream[slice(*window)], content=f"{place}") for place, window in windows.items()]
    thresholds = Thresholds(resemblance=0.55)
    run(tmp_path, settled(some), thresholds=thresholds)
    assert set(clusters_in(tmp_path).values()) == {"0:1"}
    # The new document has the same bytes as the leader, decoded differently. It has no edge to the followers, which
    # form a chain without the leader.
    run(tmp_path, settled([document(0, 7, content="1")]), thresholds=thresholds)
    assert clusters_in(tmp_path) == {"0:0": "0:0", "0:1": "0:0", "0:2": "0:2", "0:3": "0:2", "0:4": "0:4"}


class Killed(BaseException):
    pass


def steps_of(batches: Sequence[Sequence[Settled]], directory: Path) -> list[tuple[str, int, int]]:
    """Return all progress reports of the last pass of an uninterrupted run."""
    steps: list[tuple[str, int, int]] = []
    run(directory, *batches[:-1])
    corpus = Corpus(str(directory / "corpus"))
    add_file(corpus, batches[-1])
    recluster(corpus, directory / "out", options(), [AllPairs()], lambda *step: steps.append(step))
    return steps


def test_a_run_killed_at_any_step_resumes_there(tmp_path: Path) -> None:
    documents = [*chain(8), document(20, 20), document(21, 20), document(9, shingles(1, 600)[100:300])]
    batches = [settled(documents[:5]), settled(documents[5:])]
    steps = steps_of(batches, tmp_path / "whole")
    assert {phase for phase, _, _ in steps} == {
        "gather", "copies", "pairs shingles", "edges", "clusters", "overturned", "results", "index",
    }  # fmt: skip
    for number in range(len(steps)):
        directory = tmp_path / str(number)
        run(directory, *batches[:-1])
        corpus = Corpus(str(directory / "corpus"))
        add_file(corpus, batches[-1])
        reported: list[tuple[str, int, int]] = []

        def report_step(*step: object) -> None:
            reported.append(step)  # type: ignore[arg-type]  # noqa: B023
            if len(reported) == number + 1:  # noqa: B023
                raise Killed

        with pytest.raises(Killed):
            recluster(corpus, directory / "out", options(), [AllPairs()], report_step)
        source = AllPairs()
        report = recluster(corpus, directory / "out", options(), [source])
        assert results_in(directory) == results_in(tmp_path / "whole")
        assert rows_in(directory, "overturned") == rows_in(tmp_path / "whole", "overturned")
        done = {phase for phase, at, of in reported if at == of}
        assert {phase.name for phase in report.phases if phase.repeated} >= done - {"gather", "pairs shingles"}
        assert source.calls == ([] if {"pairs shingles", "edges"} & done else [5])


def test_documents_that_arrive_after_an_interruption_are_processed_after_the_resumed_run(tmp_path: Path) -> None:
    some = settled(chain(9))
    corpus = Corpus(str(tmp_path / "corpus"))
    add_file(corpus, some[:4])

    def kill(phase: str, done: int, of: int) -> None:
        if phase == "copies":
            raise Killed

    with pytest.raises(Killed):
        recluster(corpus, tmp_path / "out", options(), [AllPairs()], kill)
    add_file(corpus, some[4:])
    source = AllPairs()
    report = recluster(corpus, tmp_path / "out", options(), [source])
    assert source.calls == [0, 4]
    assert report.new_documents == report.documents == 9
    run(tmp_path / "whole", some)
    assert results_in(tmp_path) == results_in(tmp_path / "whole")


def test_without_new_documents_nothing_is_done(tmp_path: Path) -> None:
    run(tmp_path, settled(chain(5)))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}
    source = AllPairs()
    report = recluster(Corpus(str(tmp_path / "corpus")), tmp_path / "out", options(), [source])
    assert source.calls == []
    assert (report.documents, report.new_documents) == (5, 0)
    assert all(phase.repeated for phase in report.phases if phase.name != "gather")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}


def test_an_empty_corpus_has_no_clusters(tmp_path: Path) -> None:
    report = recluster(Corpus(str(tmp_path / "corpus")), tmp_path / "out", options(), [AllPairs()])
    assert (report.documents, report.clusters, report.largest, report.edges) == (0, 0, 0, 0)
    assert rows_in(tmp_path, "clusters") == []


def test_another_representative_needs_no_new_comparison(tmp_path: Path) -> None:
    text = shingles(1, 300)
    some = [document(0, text, url="http://a.example/long"), document(1, text, url="https://b.example/a/longer/one")]
    run(tmp_path, settled(some))
    for rule, expected in (("first", "0:0"), ("https", "0:1"), ("shortest-url", "0:0"), ("longest", "0:0")):
        source = AllPairs()
        recluster(Corpus(str(tmp_path / "corpus")), tmp_path / "out", options(representative=rule), [source])
        assert source.calls == []
        assert {row["representative"] for row in rows_in(tmp_path, "clusters")} == {expected}


# Refused inputs


def test_other_options_are_refused_until_results_are_discarded(tmp_path: Path) -> None:
    run(tmp_path, settled(chain(4)))
    corpus = Corpus(str(tmp_path / "corpus"))
    other = options(thresholds=Thresholds(0.3))
    with pytest.raises(WrongState, match=r"thresholds: expected .*0\.65.*, got .*0\.3.*--full"):
        recluster(corpus, tmp_path / "out", other, [AllPairs()])
    reset_pass(tmp_path / "out")
    assert recluster(corpus, tmp_path / "out", other, [AllPairs()]).new_documents == 4


def test_another_signature_version_is_refused(tmp_path: Path) -> None:
    add_file(Corpus(str(tmp_path / "corpus")), settled(chain(2)))
    other = replace(options(), signature_version="nd9")
    with pytest.raises(WrongState, match="expected a corpus with signatures nd9, got nd1"):
        recluster(Corpus(str(tmp_path / "corpus")), tmp_path / "out", other, [AllPairs()])


def test_two_concurrent_passes_are_refused(tmp_path: Path) -> None:
    run(tmp_path, settled(chain(2)))
    corpus = Corpus(str(tmp_path / "corpus"))

    def report_step(phase: str, done: int, of: int) -> None:
        with pytest.raises(StateError, match="expected to be the only pass"):
            recluster(corpus, tmp_path / "out", options(), [AllPairs()])

    recluster(corpus, tmp_path / "out", options(), [AllPairs()], report_step)


def test_documents_that_were_gathered_again_are_refused(tmp_path: Path) -> None:
    run(tmp_path, settled(chain(2)), settled(chain(5)[2:]))
    shutil.rmtree(tmp_path / "out" / "work" / "gathered")
    shutil.rmtree(tmp_path / "corpus")
    add_file(Corpus(str(tmp_path / "corpus")), settled(chain(5)))
    with pytest.raises(StateError, match="--full"):
        recluster(Corpus(str(tmp_path / "corpus")), tmp_path / "out", options(), [AllPairs()])


# Verdicts that differ from those of the stream


def overturned(directory: Path) -> dict[str, tuple[int, str | None, str | None]]:
    rows = rows_in(directory, "overturned")
    return {row["document"]: (row["revision"], row["relation"], row["duplicate_of"]) for row in rows}


def test_a_changed_verdict_has_a_new_revision(tmp_path: Path) -> None:
    text = shingles(1, 300)
    near = np.concatenate([text[:280], shingles(2, 20)])
    run(tmp_path, settled([document(5, text), document(6, near)]))
    assert overturned(tmp_path) == {"0:6": (2, "near", "0:5")}
    run(tmp_path, settled([document(7, 7)]))
    assert overturned(tmp_path) == {"0:6": (2, "near", "0:5")}
    run(tmp_path, settled([document(1, text)]))
    assert overturned(tmp_path) == {"0:5": (2, "same-shingles", "0:1"), "0:6": (3, "near", "0:1")}
    reset_pass(tmp_path / "out")
    recluster(Corpus(str(tmp_path / "corpus")), tmp_path / "out", options(), [AllPairs()])
    assert overturned(tmp_path) == {"0:5": (2, "same-shingles", "0:1"), "0:6": (3, "near", "0:1")}


def test_a_retracted_duplicate_is_unique(tmp_path: Path) -> None:
    """The leader of a cluster becomes a follower of an earlier document, and its own follower is then alone."""
    stream = shingles(1, 500)
    windows = {place: stream[start : start + 200] for place, start in ((0, 0), (1, 40), (2, 80))}
    thresholds = Thresholds(resemblance=0.55)
    run(tmp_path, settled([document(1, windows[1]), document(2, windows[2])]), thresholds=thresholds)
    assert overturned(tmp_path) == {"0:2": (2, "near", "0:1")}
    run(tmp_path, settled([document(0, windows[0])]), thresholds=thresholds)
    assert overturned(tmp_path) == {"0:1": (2, "near", "0:0"), "0:2": (3, None, None)}
    run(tmp_path, settled([document(9, 9)]), thresholds=thresholds)
    assert overturned(tmp_path) == {"0:1": (2, "near", "0:0"), "0:2": (3, None, None)}


def test_no_verdict_names_a_later_document(tmp_path: Path) -> None:
    text = shingles(1, 400)
    run(tmp_path, settled([document(1, text[:150]), document(2, text)]))
    assert [row["document"] for row in rows_in(tmp_path, "contained")] == ["0:1"]
    assert overturned(tmp_path) == {}


@pytest.mark.parametrize("name", ["clusters.parquet", "index.sqlite"])
def test_missing_results_are_rebuilt(name: str, tmp_path: Path) -> None:
    run(tmp_path, settled(chain(4)))
    before = results_in(tmp_path)
    (tmp_path / "out" / name).unlink()
    recluster(Corpus(str(tmp_path / "corpus")), tmp_path / "out", options(), [AllPairs()])
    assert (tmp_path / "out" / name).exists()
    assert results_in(tmp_path) == before

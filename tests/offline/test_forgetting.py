"""Tests of forgotten pages: the next pass removes them from all results, and the remaining results are correct."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from neardup import Deduplicator
from neardup.messages.forgotten import Forgotten
from neardup.messages.topics import Topics
from neardup.offline.corpus.columns import gather
from neardup.offline.corpus.corpus import Corpus, ForgottenFile
from neardup.offline.options import Options
from neardup.offline.passes.recluster import RESULTS, run_pass
from neardup.offline.queries.queries import Queries
from neardup.offline.results.publishing import find_unpublished, set_published, unpublished
from neardup.types import DocumentId, Relation
from tests.embedded.test_deduplicator import SETTINGS, TEXT, page
from tests.offline.made_runs import SIGNATURE, add_file, match_of, results_in, rows_in, settled
from tests.support.documents import document, shingles

OPTIONS = Options(signature_version=SIGNATURE)


def forget(corpus: Corpus, *documents: DocumentId) -> None:
    file = ForgottenFile(0, corpus.end(0), corpus.end(0))
    corpus.prepare_forgotten(file, Forgotten(np.array(documents, np.int64)))
    corpus.publish(file)


def published(results: Path) -> dict[str, bool]:
    """Publish the results. Return for each url of the clusters topic if it has a cluster."""
    find_unpublished(results)
    outputs = [each for some in unpublished(results, Topics.under("t"), "nd1", "json") for each in some]
    set_published(results)
    return {
        (each.key or b"").decode(): each.value is not None
        for each in outputs
        if each.topic == Topics.under("t").clusters
    }


def test_a_forgotten_url_is_in_no_results_and_its_copies_keep_their_cluster(tmp_path: Path) -> None:
    near = page("https://c.example/", TEXT.replace("ninety", "eighty"))
    corpus, results = str(tmp_path / "corpus"), tmp_path / RESULTS
    options = Options.of(SETTINGS)
    with Deduplicator(tmp_path, SETTINGS) as known:
        # The copy has no sketch: only the page that will be forgotten has it.
        known.add_all([page("https://a.example/"), page("https://b.example/"), near])
        known.save()
        assert run_pass(corpus, results, options).documents == 3
        assert published(results) == {
            "https://a.example/": True,
            "https://b.example/": True,
            "https://c.example/": True,
        }
        known.forget("https://a.example/")
        known.save()
        report = run_pass(corpus, results, options)
        assert (report.documents, report.clusters, report.near) == (2, 1, 1)
        found = Queries.of(results, SETTINGS)
        assert found.lookup("https://a.example/") is None
        assert [each.url for each in found.similar(near).documents] == ["https://c.example/", "https://b.example/"]
        assert published(results)["https://a.example/"] is False
        assert published(results) == {}
        # An order to forget does not apply to later pages.
        known.add(page("https://a.example/"))
        known.save()
        assert run_pass(corpus, results, options).documents == 3
        assert published(results)["https://a.example/"] is True
        known.expire(before=2**50)
        known.save()
        assert run_pass(corpus, results, options).documents == 0
        assert set(published(results).values()) == {False}
        known.add(page("https://d.example/"))
        known.save()
        assert run_pass(corpus, results, options).documents == 1


def chained(corpus: Corpus) -> None:
    """Add pages of which each is near the next one. The second page has a copy without a sketch."""
    stream = shingles(1, 300)
    first, second, third = (document(step, stream[10 * step : 10 * step + 200]) for step in range(3))
    copy = document(9, stream[10:210], tokens="copied")
    second = document(1, stream[10:210], tokens="copied")
    add_file(corpus, settled([first, copy], {9: match_of(second, Relation.SAME_TEXT)}))
    add_file(corpus, settled([second, third, document(4, 4)]))


def test_results_do_not_depend_on_the_time_of_forgetting(tmp_path: Path) -> None:
    gone = DocumentId(1, 0, 1), DocumentId(4, 0, 4)
    early, late = tmp_path / "early", tmp_path / "late"
    for directory in (early, late):
        corpus = Corpus(str(directory / "corpus"))
        if directory is early:
            forget(corpus, *gone)
        chained(corpus)
        if directory is late:
            run_pass(str(directory / "corpus"), directory / "out", OPTIONS)
            forget(corpus, *gone)
        run_pass(str(directory / "corpus"), directory / "out", OPTIONS)
    assert results_in(early) == results_in(late)
    assert {row["offset"]: row["cluster"] for row in rows_in(late, "clusters")} == {0: "0:0", 2: "0:0", 9: "0:0"}


@pytest.mark.parametrize("removed", range(2))
def test_a_pass_that_was_interrupted_while_it_removed_its_results_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: int
) -> None:
    address, corpus, out = str(tmp_path / "corpus"), Corpus(str(tmp_path / "corpus")), tmp_path / "out"
    chained(corpus)
    run_pass(address, out, OPTIONS)
    add_file(corpus, settled([document(5, 5)]))
    forget(corpus, DocumentId(1, 0, 1))
    remove, done = shutil.rmtree, 0

    def interrupted_removal(path: Path) -> None:
        """Interrupt the removal after `removed` folders, in the middle of the next one."""
        nonlocal done
        if done == removed:
            next(each for each in path.rglob("*") if each.is_file() and each.suffix != ".json").unlink()
            raise KeyboardInterrupt
        done += 1
        remove(path)

    with monkeypatch.context() as patch:
        patch.setattr("neardup.offline.passes.recluster.shutil.rmtree", interrupted_removal)
        with pytest.raises(KeyboardInterrupt):
            run_pass(address, out, OPTIONS)
    assert run_pass(address, out, OPTIONS).documents == 5
    assert "http://0.example/1" not in [row["url"] for row in rows_in(tmp_path, "clusters")]


def test_replay_includes_forgotten_pages(tmp_path: Path) -> None:
    corpus = Corpus(str(tmp_path / "corpus"))
    chained(corpus)
    forget(corpus, DocumentId(1, 0, 1))
    assert len(gather(corpus, tmp_path / "all")) == 5
    assert len(gather(corpus, tmp_path / "rest", forgotten=corpus.forgotten())) == 4

"""Tests of queries on an offline pass: pages with the same text, similar pages, moved pages, and changes of pages."""

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import NotClustered, StateError, WrongState
from neardup.offline.layout import source_directory
from neardup.offline.passes.recluster import open_documents, reset_pass
from neardup.offline.queries.index_writer import build_index
from neardup.offline.queries.queries import Queries
from neardup.sample import sample_crawl
from neardup.signatures.packed_sketch import compare, pack_sketch
from neardup.signatures.shingles import containment, resemblance, shingles_of
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.types import Document, Page
from tests.offline.by_hand import SIGNATURES, THRESHOLDS, document_of, place_of, queries_in, run_pass
from tests.offline.test_index_writer import HOSTILE
from tests.support.documents import text_of

ARTICLE = text_of(1, 400)
OTHER = text_of(2, 400)
EXCERPT = ARTICLE[100:160]


def page(url: str, words: list[str], day: int = 1, markup: str = "<p>") -> Page:
    return Page(url, html=(markup + " ".join(words)).encode(), fetched_at=f"2026-01-{day:02d}T00:00:00Z")


def documents(*pages: Page) -> list[Document]:
    return [document_of(number, each) for number, each in enumerate(pages)]


def edited(words: list[str], count: int, seed: int = 0) -> list[str]:
    """Return the words with `count` of them replaced at random places."""
    words = list(words)
    for place in random.Random(seed).sample(range(len(words)), count):
        words[place] = f"edited{place}"
    return words


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Queries:
    return run_pass(
        tmp_path_factory.mktemp("known"),
        documents(
            page("http://a.example/story", ARTICLE, 1),
            page("http://mirror.example/story", ARTICLE, 2),
            page("http://b.example/edited", edited(ARTICLE, 5), 3),
            page("http://c.example/other", OTHER, 4),
            page("http://a.example/story", ARTICLE, 5),
            page("http://d.example/excerpt", EXCERPT, 6),
            page("http://c.example/other", edited(OTHER, 4), 7),
            page("http://c.example/other", text_of(3, 400), 8),
            page("http://c.example/other", text_of(3, 400), 9, markup="<h1>"),
        ),
    )


# Lookup


def test_a_url_has_its_documents_newest_first_their_cluster_and_the_urls_in_it(known: Queries) -> None:
    found = known.lookup("http://a.example/story")
    assert found is not None
    assert [(each.document, each.relation) for each in found.documents] == [("0:4", "identical"), ("0:0", "first")]
    (cluster,) = found.clusters
    assert (cluster.name, cluster.size) == ("0:0", 4)
    assert (cluster.representative.url, cluster.representative.document) == ("http://a.example/story", "0:0")
    assert [(each.url, each.relation) for each in cluster.urls] == [
        ("http://a.example/story", "identical"),
        ("http://b.example/edited", "near"),
        ("http://mirror.example/story", "identical"),
    ]


def test_a_url_of_several_clusters_has_them_all(known: Queries) -> None:
    found = known.lookup("http://c.example/other")
    assert found is not None
    assert [each.cluster for each in found.documents] == ["0:7", "0:7", "0:3", "0:3"]
    assert [each.name for each in found.clusters] == ["0:7", "0:3"]


def test_containment_is_reported_on_both_sides_and_for_copies(known: Queries) -> None:
    part = known.lookup("http://d.example/excerpt")
    assert part is not None
    assert [(each.url, each.document) for each in part.contained_in] == [
        ("http://a.example/story", "0:0"),
        ("http://b.example/edited", "0:2"),
    ]
    assert part.contains == []
    whole = known.lookup("http://mirror.example/story")
    assert whole is not None
    assert [each.url for each in whole.contains] == ["http://d.example/excerpt"]
    assert whole.contained_in == []


def test_an_unknown_url_is_none(known: Queries) -> None:
    for url in ("http://nowhere.example/", *HOSTILE):
        assert known.lookup(url) is None
        assert known.moved(url) is None
        assert known.history(url) is None


@pytest.mark.parametrize("url", HOSTILE, ids=lambda url: ascii(url)[:30])
def test_a_hostile_url_is_found_like_any_other(tmp_path: Path, url: str) -> None:
    hostile = run_pass(tmp_path, documents(page(url, ARTICLE, 1), page("http://b.example/", ARTICLE, 2)))
    found, gone = hostile.lookup(url), hostile.moved(url)
    assert found is not None
    assert [each.url for each in found.clusters[0].urls] == ["http://b.example/", url]
    assert gone is not None
    assert gone.moved


# Similar


def test_a_known_page_is_found_by_its_text(known: Queries) -> None:
    found = known.similar(page("-", ARTICLE))
    assert found.skipped is None
    first = found.documents[0]
    assert (first.url, first.relation, first.resemblance) == ("http://a.example/story", "identical", 1.0)
    assert (first.cluster, first.cluster_size) == ("0:0", 4)
    assert [each.relation for each in found.documents] == ["identical", "near", "contains"]


def test_an_edited_page_is_near_and_a_part_is_contained(known: Queries) -> None:
    near = known.similar(page("-", edited(ARTICLE, 12, seed=5)), limit=1).documents
    assert [(each.document, each.relation) for each in near] == [("0:0", "near")]
    within = known.similar(page("-", ARTICLE[50:250])).documents[0]
    assert (within.relation, within.text_in_document) == ("contained", 1.0)


def test_plain_text_is_compared_with_pages(known: Queries) -> None:
    found = known.similar(Page("-", text=" ".join(ARTICLE))).documents[0]
    assert found.relation == "same-text"


def test_an_unrelated_text_finds_nothing(known: Queries) -> None:
    assert known.similar(page("-", text_of(99, 400))).documents == []


@pytest.mark.parametrize(("content", "why"), [(b"", "empty"), (b"too short", "too short"), (b"%PDF-1.7", "not text")])
def test_a_page_that_cannot_be_compared_has_a_reason(known: Queries, content: bytes, why: str) -> None:
    found = known.similar(Page("-", html=content))
    assert (found.skipped, found.documents) == (why, [])


def test_other_settings_of_signatures_are_a_clear_error(tmp_path: Path) -> None:
    run_pass(tmp_path, documents(page("http://a.example/", ARTICLE)))
    other = Queries(place_of(tmp_path), Signatures(SignatureOptions(w=5)), THRESHOLDS)
    with pytest.raises(WrongState, match=r"expected settings that make signatures .*shingles-3.*, got .*shingles-5"):
        other.similar(page("-", ARTICLE))


def test_containment_in_a_long_text_is_more_exact_than_from_two_samples(tmp_path: Path) -> None:
    """Two samples of a page of 150 words and a text of 20,000 words share about one shingle in 128."""
    part = text_of(5, 150)
    long = text_of(6, 10_000) + part + text_of(7, 10_000)
    query = page("-", long)
    known = run_pass(tmp_path, documents(page("http://a.example/part", part)))
    (found,) = known.similar(query).documents
    assert (found.relation, found.document_in_text) == ("contains", 1.0)
    sketches = SIGNATURES.of(query).sketches
    assert sketches is not None
    assert compare(document_of(0, page("-", part)).sketch, pack_sketch(sketches)).a_in_b is None


SHORT = page("http://a.example/short", text_of(8, 100))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Queries:
    return run_pass(tmp_path_factory.mktemp("short"), documents(SHORT))


@given(st.integers(0, 60), st.integers(60, 100), st.integers(0, 1000))
@settings(deadline=None, max_examples=50)
def test_figures_of_a_short_page_are_exact(short: Queries, start: int, end: int, seed: int) -> None:
    """The sample of a page of up to 100 shingles contains all of them."""
    query = page("-", text_of(8, 100)[start:end] + text_of(seed, 50))
    a, b = (shingles_of(SIGNATURES.text_and_tokens(each)[1], 3).copy() for each in (query, SHORT))
    for found in short.similar(query).documents:
        assert found.resemblance == pytest.approx(resemblance(a, b), abs=1e-4)
        assert found.text_in_document == pytest.approx(containment(a, b), abs=1e-4)
        assert found.document_in_text == pytest.approx(containment(b, a), abs=1e-4)


def test_the_most_similar_of_many_related_pages_are_found(tmp_path: Path) -> None:
    """300 pages share a third with the text, and one page is an edit of it."""
    head = text_of(20, 150)
    text = head + text_of(21, 300)
    pages = [page(f"http://a.example/{n}", head + text_of(100 + n, 300)) for n in range(300)]
    pages.append(page("http://b.example/", edited(text, 10)))
    known = run_pass(tmp_path, documents(*pages))
    assert [each.url for each in known.similar(page("-", text), limit=1).documents] == ["http://b.example/"]


def test_estimates_in_a_crawl_are_near_the_truth_and_no_similar_page_is_missed(tmp_path: Path) -> None:
    """Compare with full shingle sets, within five standard deviations of 128 MIPs values or 50 shingles."""
    pages = [each.page for each in sample_crawl(150, seed=3, mean_bytes=8000)]
    pages = [each for each in pages if SIGNATURES.of(each).sketches is not None]
    known = run_pass(tmp_path, documents(*pages))
    exact = [shingles_of(SIGNATURES.text_and_tokens(each)[1], 3).copy() for each in pages]
    for number, query in enumerate(pages[::4]):
        mine = exact[4 * number]
        found = {int(each.document[2:]): each for each in known.similar(query, limit=100).documents}
        for other, theirs in enumerate(exact):
            if other in found:
                assert found[other].resemblance == pytest.approx(resemblance(mine, theirs), abs=0.23)
                assert found[other].document_in_text == pytest.approx(containment(theirs, mine), abs=0.36)
        like = {other for other, theirs in enumerate(exact) if resemblance(mine, theirs) > 0.5}
        kept = {each.checksums.shingles: each for each in reversed(documents(*pages))}
        assert {kept[each.checksums.shingles].id.offset for each in documents(*(pages[o] for o in like))} <= set(found)


def test_without_shingles_of_the_documents_there_is_a_clear_error(tmp_path: Path) -> None:
    queries = run_pass(tmp_path, documents(page("http://a.example/", ARTICLE)))
    shutil.rmtree(source_directory(tmp_path / "clusters", "shingles"))
    with pytest.raises(NotClustered, match="shingles among its sources"):
        queries.similar(page("-", ARTICLE))
    assert queries.moved("http://a.example/") is not None


def test_a_document_replaced_by_an_earlier_copy_is_not_returned(tmp_path: Path) -> None:
    """The earlier of two copies is returned, although the later one was added first and its postings remain."""
    late, early = documents(page("http://late.example/", ARTICLE), page("http://early.example/", ARTICLE))
    run_pass(tmp_path, [late])
    early = replace(early, id=early.id._replace(timestamp=1))
    queries = run_pass(tmp_path, [early])
    assert [each.url for each in queries.similar(page("-", ARTICLE)).documents] == ["http://early.example/"]


def test_postings_of_newer_documents_are_ignored(tmp_path: Path) -> None:
    some = documents(page("http://a.example/", ARTICLE), page("http://b.example/", edited(ARTICLE, 5)))
    queries = run_pass(tmp_path / "before", some[:1])
    run_pass(tmp_path / "since", some)
    ahead = place_of(tmp_path / "before")._replace(postings=place_of(tmp_path / "since").postings)
    assert ahead.postings().rows == 2
    found = Queries(ahead, SIGNATURES, THRESHOLDS).similar(page("-", ARTICLE))
    assert found == queries.similar(page("-", ARTICLE))


# Lost and found


def test_a_moved_page_is_found_under_its_latest_url(known: Queries) -> None:
    gone = known.moved("http://mirror.example/story")
    assert gone is not None
    assert gone.found is not None
    assert (gone.document, gone.moved, gone.found.url) == ("0:1", True, "http://a.example/story")
    assert (gone.found.document, gone.found.relation, gone.found.resemblance) == ("0:4", "identical", 1.0)


def test_a_page_last_seen_under_its_own_url_has_not_moved(known: Queries) -> None:
    here = known.moved("http://a.example/story")
    assert here is not None
    assert here.found is not None
    assert (here.moved, here.found.url, here.found.relation) == (False, "http://b.example/edited", "near")


def test_a_page_without_copies_has_no_new_url(known: Queries) -> None:
    alone = known.moved("http://c.example/other")
    assert alone is not None
    assert (alone.document, alone.moved, alone.found) == ("0:8", False, None)


def test_only_the_last_document_of_a_url_determines_its_new_url(tmp_path: Path) -> None:
    """The url had the article first and another text later, so the copy of the article is not the moved page."""
    pages = (
        page("http://a.example/", ARTICLE, 1),
        page("http://a.example/", OTHER, 2),
        page("http://b.example/", ARTICLE, 3),
    )
    gone = run_pass(tmp_path, documents(*pages)).moved("http://a.example/")
    assert gone is not None
    assert gone.found is None


# Changes


def test_the_versions_of_a_url_and_what_changed_between_them(known: Queries) -> None:
    found = known.history("http://c.example/other")
    assert found is not None
    assert [each.document for each in found.versions] == ["0:3", "0:6", "0:7", "0:8"]
    assert [each.change for each in found.versions] == [None, "near", "changed", "same-text"]
    near, changed, same = (each.resemblance for each in found.versions[1:])
    assert near is not None and 0.9 < near < 1  # noqa: PT018
    assert changed is not None and changed < 0.1  # noqa: PT018
    assert same == 1.0


def test_a_url_with_one_document_has_not_changed(known: Queries) -> None:
    found = known.history("http://b.example/edited")
    assert found is not None
    assert [each.change for each in found.versions] == [None]


def test_a_summary_of_all_urls_with_several_documents(known: Queries) -> None:
    summary = known.changes()
    assert (summary.urls, summary.pairs) == (2, 4)
    assert summary.by_change == {"unchanged": 1, "same-text": 1, "near": 1, "changed": 1}
    assert summary.by_resemblance == [1, 0, 0, 0, 0, 0, 0, 0, 0, 3]
    assert [(each.name, each.urls, each.versions, each.changes) for each in summary.hosts] == [
        ("c.example", 1, 4, 2),
        ("a.example", 1, 2, 0),
    ]


# Before, between and after passes


def test_before_the_first_pass_every_query_is_a_clear_error(tmp_path: Path) -> None:
    early = queries_in(tmp_path)
    questions = (
        lambda: early.lookup("http://a.example/"),
        lambda: early.moved("http://a.example/"),
        lambda: early.history("http://a.example/"),
        early.changes,
        lambda: early.similar(page("-", ARTICLE)),
    )
    for question in questions:
        with pytest.raises(NotClustered, match="run `neardup recluster`"):
            question()


def test_every_query_uses_the_latest_pass(tmp_path: Path) -> None:
    pages = [page("http://a.example/", ARTICLE, 1)]
    queries = run_pass(tmp_path, documents(*pages))
    assert queries.similar(page("-", OTHER)).documents == []
    assert queries.changes().urls == 0
    pages += [page("http://a.example/", OTHER, 2), page("http://b.example/", OTHER, 3)]
    run_pass(tmp_path, documents(*pages))
    found, gone = queries.lookup("http://a.example/"), queries.moved("http://a.example/")
    assert found is not None
    assert len(found.documents) == 2
    assert gone is not None
    assert gone.moved
    assert queries.similar(page("-", OTHER)).documents[0].relation == "identical"
    assert queries.changes().by_change["changed"] == 1


def test_a_query_while_documents_are_gathered_again_is_a_clear_error(tmp_path: Path) -> None:
    queries = run_pass(tmp_path, documents(page("http://a.example/", ARTICLE, 1), page("http://a.example/", OTHER, 2)))
    reset_pass(tmp_path / "clusters")
    for question in (lambda: queries.similar(page("-", ARTICLE)), queries.changes):
        with pytest.raises(StateError, match="run `neardup recluster`"):
            question()
    assert queries.lookup("http://a.example/") is not None


def test_results_without_sketches_support_queries_that_need_none(tmp_path: Path) -> None:
    queries = run_pass(
        tmp_path, documents(page("http://a.example/", ARTICLE, 1), page("http://b.example/", ARTICLE, 2))
    )
    build_index(tmp_path / "clusters")
    gone = queries.moved("http://a.example/")
    assert gone is not None
    assert gone.found is not None
    assert (gone.moved, gone.found.url, gone.found.relation) == (True, "http://b.example/", None)
    assert queries.lookup("http://a.example/") is not None


def test_rows_of_other_documents_are_a_clear_error(tmp_path: Path) -> None:
    queries = run_pass(
        tmp_path / "a", documents(page("http://a.example/", ARTICLE, 1), page("http://a.example/", OTHER, 2))
    )
    others = [replace(each, id=each.id._replace(offset=each.id.offset + 5)) for each in documents(page("-", ARTICLE))]
    run_pass(tmp_path / "b", others)
    place = place_of(tmp_path / "a")._replace(documents=lambda: open_documents(tmp_path / "b" / "clusters"))
    with pytest.raises(WrongState, match="expected it in row"):
        Queries(place, SIGNATURES, THRESHOLDS).history("http://a.example/")
    assert queries.history("http://a.example/") is not None


def test_concurrent_queries_during_passes(tmp_path: Path) -> None:
    pages = [page("http://a.example/", ARTICLE, 1), page("http://b.example/", ARTICLE, 2)]
    queries = run_pass(tmp_path, documents(*pages))

    def ask(number: int) -> None:
        found, gone = queries.lookup("http://a.example/"), queries.moved("http://a.example/")
        assert found is not None
        assert gone is not None
        assert gone.found is not None
        assert found.clusters[0].size >= 2
        assert queries.history("http://a.example/") is not None
        assert queries.changes().urls <= 1
        assert queries.similar(page("-", ARTICLE)).documents

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, number) for number in range(60)]
        for day in range(3, 8):
            pages.append(page("http://a.example/", edited(ARTICLE, day), day))
            run_pass(tmp_path, documents(*pages))
        for each in asking:
            each.result()

"""Tests of the truth of the sample crawl, against the text that the product extracts from its pages."""

from collections import Counter, defaultdict
from itertools import islice, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from neardup.sample import Sampled, sample_crawl
from neardup.sample.changes import CHANGES
from neardup.sample.hosts import HOSTS, PAGES_A_HOST, Hosts
from neardup.sample.languages import LANGUAGES
from neardup.sample.truth import is_duplicate
from neardup.signatures.shingles import containment, resemblance, shingles_of
from neardup.signatures.signature import Signatures
from neardup.text.extraction import Limits, read_text
from neardup.text.tokens import tokens_of

PAGES = 2500


@pytest.fixture(scope="module")
def crawl() -> list[Sampled]:
    return list(sample_crawl(PAGES, seed=7, mean_bytes=8000))


def main_shingles(made: Sampled) -> NDArray[np.uint64]:
    text = read_text(made.page, Limits(), main_content=True)
    return shingles_of(tokens_of(text.utf8), 3)


def test_the_same_seed_makes_the_same_pages_and_a_longer_crawl_starts_with_them() -> None:
    short = list(sample_crawl(60, seed=3))
    assert short == list(islice(sample_crawl(1000, seed=3), 60))
    assert short != list(sample_crawl(60, seed=4))


def test_hosts_end_and_are_replaced_by_others() -> None:
    hosts = Hosts(1, 4000)
    first = [hosts.in_place(place) for place in range(HOSTS)]
    hosts.at_page(HOSTS * PAGES_A_HOST - 1)
    assert [hosts.in_place(place) for place in range(HOSTS)] == first
    hosts.at_page(HOSTS * PAGES_A_HOST)
    assert [place for place in range(HOSTS) if hosts.in_place(place) is not first[place]] == [0]
    names = {host.name for host in first}
    for number in range(HOSTS * PAGES_A_HOST, 10 * HOSTS * PAGES_A_HOST, PAGES_A_HOST):
        hosts.at_page(number)
        # A page may move to another host in the same language.
        assert all(len(hosts.numbers_in(language)) > 1 for language in LANGUAGES)
        names.add(hosts.in_place(0).name)
    assert len(names) == HOSTS + 9
    assert not {hosts.in_place(place).name for place in range(HOSTS)} & {host.name for host in first}


def test_every_kind_of_page_occurs(crawl: list[Sampled]) -> None:
    kinds = Counter(made.truth.kind for made in crawl)
    expected = {"original", "identical", "same-text", "ad", "counter", "timestamp", "session", "small-edit"}
    expected |= {"large-edit", "drift", "archive", "contained", "mirror-template", "syndicated", "recrawl"}
    expected |= {"recrawl-changed", "error-page", "skipped-short", "skipped-empty", "skipped-type"}
    assert set(kinds) == expected
    assert len(expected) == len(CHANGES) + 5
    assert 0.4 < kinds["original"] / PAGES < 0.6


def test_numbers_and_times_increase(crawl: list[Sampled]) -> None:
    assert [made.truth.number for made in crawl] == list(range(PAGES))
    times = [made.page.fetched_at or "" for made in crawl]
    assert all(a < b for a, b in pairwise(times))
    assert [(made.truth.url, made.truth.fetched_at) for made in crawl] == [
        (made.page.url, made.page.fetched_at) for made in crawl
    ]


def test_a_duplicate_names_the_first_of_its_group(crawl: list[Sampled]) -> None:
    for made in crawl:
        first = made.truth.duplicate_of
        assert (first is not None) or not made.truth.duplicate
        if first is not None:
            assert first < made.truth.number
            assert crawl[first].truth.duplicate_of is None


def test_duplicates_are_clearly_above_the_threshold(crawl: list[Sampled]) -> None:
    seen: dict[int, NDArray[np.uint64]] = {}
    for made in crawl:
        truth = made.truth
        if truth.skipped:
            continue
        seen[truth.number] = main_shingles(made)
        if truth.duplicate_of is None:
            continue
        here, there = seen[truth.number], seen[truth.duplicate_of]
        if truth.duplicate:
            assert resemblance(here, there) > 0.83 or containment(here, there) > 0.93, truth
        elif truth.duplicate is False:
            assert resemblance(here, there) < 0.65, truth
        if truth.resemblance is not None and truth.resemblance < 1:
            # The extracted text includes the headline, and in some scripts characters are tokens.
            assert resemblance(here, there) == pytest.approx(truth.resemblance, abs=0.13), truth


def test_other_pages_resemble_no_page_of_their_host(crawl: list[Sampled]) -> None:
    """The pages are read with navigation, which is the default of the product."""
    of_host: dict[str, list[NDArray[np.uint64]]] = defaultdict(list)
    for made in crawl:
        if made.truth.duplicate is not False or made.truth.kind == "large-edit":
            continue
        shingles = shingles_of(tokens_of(read_text(made.page, Limits()).utf8), 3)
        host = of_host[made.page.url.split("/")[2]]
        for other in host[-10:]:
            assert resemblance(shingles, other) < 0.65
            assert containment(shingles, other) < 0.8
        host.append(shingles)


def test_an_archive_page_contains_a_whole_earlier_page(crawl: list[Sampled]) -> None:
    archives = [made for made in crawl if made.truth.kind == "archive"]
    assert archives
    for made in archives:
        (held,) = made.truth.holds
        assert held < made.truth.number
        assert containment(main_shingles(crawl[held]), main_shingles(made)) > 0.9
        assert containment(main_shingles(made), main_shingles(crawl[held])) < 0.7


def test_copies_are_of_the_declared_kind(crawl: list[Sampled]) -> None:
    signatures = Signatures()
    for made in crawl:
        if made.truth.kind not in ("identical", "same-text", "session", "recrawl"):
            continue
        assert made.truth.duplicate_of is not None
        first = crawl[made.truth.duplicate_of].page
        assert (made.page.url == first.url) == (made.truth.kind == "recrawl")
        if made.truth.kind == "identical":
            assert made.page.html == first.html
        elif made.truth.kind != "recrawl":
            assert signatures.of(made.page).checksums.tokens == signatures.of(first).checksums.tokens
        if made.truth.kind == "same-text":
            assert made.page.html != first.html


def test_only_the_skipped_kinds_are_skipped(crawl: list[Sampled]) -> None:
    signatures = Signatures()
    for made in crawl:
        assert (signatures.of(made.page).skipped is not None) == made.truth.skipped, made.truth


def test_a_drifting_page_ends_as_borderline() -> None:
    drifts = [made.truth for made in sample_crawl(4000, 1, 8000) if made.truth.kind == "drift"]
    assert {truth.duplicate for truth in drifts} == {True, None}


def test_some_pages_have_old_charsets(crawl: list[Sampled]) -> None:
    pages = [made.page for made in crawl if not made.truth.skipped]
    found = {charset for charset in ("iso-8859-1", "koi8-r", "shift_jis", "utf-8") for page in pages
             if page.html is not None and f'charset="{charset}"'.encode() in page.html}  # fmt: skip
    assert len(found) >= 3
    assert "utf-8" in found


@pytest.mark.parametrize("mean", [8000, 20_000, 60_000])
def test_sizes_vary_widely_around_the_mean(mean: int) -> None:
    sizes = np.array([len(made.page.content) for made in sample_crawl(800, 2, mean) if not made.truth.skipped])
    assert sizes.mean() == pytest.approx(mean, rel=0.25)
    assert sizes.max() > 3 * np.median(sizes)


def test_the_pool_of_earlier_pages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.sample.crawl._POOL", 5)
    truths = [made.truth for made in sample_crawl(600, 1, 8000)]
    sources = {truth.duplicate_of for truth in truths[-100:] if truth.kind == "identical"}
    assert all(source is not None and source > 400 for source in sources)


@pytest.mark.parametrize(("value", "expected"), [(1.0, True), (0.86, True), (0.8, None), (0.51, None), (0.5, False)])
def test_the_borderline_range_is_wide(value: float, expected: bool | None) -> None:
    assert is_duplicate(value) is expected

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neardup.offline.clusters.copies import find_copies
from neardup.offline.clusters.representative import representatives
from neardup.offline.report import large_clusters
from neardup.offline.report.large_clusters import warnings_of
from tests.offline.made_runs import gathered, settled
from tests.support.documents import document, shingles

URLS = ["http://a.example/long/path", "https://b.example/longer/path", "http://c.example/", "HTTPS://d.example/path"]


@pytest.mark.parametrize(
    ("rule", "expected"), [("first", [1, 1, 1, 3]), ("longest", [2, 2, 2, 3]), ("shortest-url", [2, 2, 2, 3])]
)
def test_the_representative_of_a_cluster(tmp_path: Path, rule: str, expected: list[int]) -> None:
    places = [2, 1, 3, 4]
    some = [document(place, place, url=url) for place, url in zip(places, URLS, strict=True)]
    some = [replace(each, size=size) for each, size in zip(some, [10, 10, 20, 90], strict=True)]
    documents = gathered(tmp_path, settled(some))
    assert representatives(documents, np.array([0, 0, 0, 3], np.uint32), rule).tolist() == expected


def test_an_https_page_represents_a_cluster_that_has_one(tmp_path: Path) -> None:
    documents = gathered(tmp_path, settled([document(place, place, url=url) for place, url in enumerate(URLS)]))
    assert representatives(documents, np.array([0, 0, 0, 0], np.uint32), "https").tolist() == [1] * 4
    assert representatives(documents, np.array([0, 1, 0, 1], np.uint32), "https").tolist() == [0, 1, 0, 1]


def test_the_warning_about_a_large_cluster_names_its_host_and_shingle(tmp_path: Path) -> None:
    common = shingles(1, 5)
    some = [
        document(place, np.concatenate([common[:4] if place else common, shingles(10 + place, 30)]), url=url)
        for place, url in enumerate([f"http://shop.example/{n}" for n in range(3)] + ["http://other.example/"])
    ]
    documents = gathered(tmp_path, settled([*some, document(9, 9)]))
    cluster = np.array([0, 0, 0, 0, 4], np.uint32)
    copies = find_copies(documents)
    [warning] = warnings_of(documents, copies, cluster, 4)
    assert warning.startswith("cluster 0:0 has 4 documents, 75% of them from shop.example; 100% of those")
    assert warning.rpartition(" ")[2] in {f"{shingle:016x}" for shingle in common}
    assert warnings_of(documents, copies, cluster, 5) == []


def test_warnings_name_the_largest_clusters_and_the_first_of_equal_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = gathered(tmp_path, settled([document(place, place) for place in (5, 6, 0, 1, 7, 8, 9)]))
    cluster, copies = np.array([0, 0, 2, 2, 4, 4, 4], np.uint32), find_copies(documents)
    for most in (3, 2):
        monkeypatch.setattr(large_clusters, "MOST_WARNINGS", most)
        warning = [warning.split()[1] for warning in warnings_of(documents, copies, cluster, 2)]
        assert warning == ["0:7", "0:0", "0:5"][:most]

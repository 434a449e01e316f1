"""Tests that the engine on Spark has the same results as the engine on one machine.
NEARDUP_TEST_SPARK_PAGES=20000 compares them on a longer crawl.
"""

import gc
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

from neardup.errors import StateError, WrongState
from neardup.kernels.offline import leaders
from neardup.kernels.offline.postings import KEPT
from neardup.kernels.signatures.shingling import ngrams
from neardup.messages.forgotten import Forgotten
from neardup.messages.settled import Settled, read_batch, write_documents
from neardup.offline.corpus.corpus import Corpus, CorpusFile, ForgottenFile
from neardup.offline.layout import WORK, source_directory
from neardup.offline.options import Options
from neardup.offline.pairs.sources import make_source
from neardup.offline.passes.lock import exclusive_pass
from neardup.offline.passes.recluster import recluster
from neardup.offline.report.report import Report
from neardup.offline.spark.components import components
from neardup.offline.spark.engine import recluster_spark
from neardup.offline.spark.session import Scratch, spark_session
from neardup.sample import sample_crawl
from neardup.settings import PAIR_SOURCES
from neardup.signatures.packed_sketch import pack_sketch
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.types import Document, DocumentId, Relation
from tests.offline.made_runs import RESULTS, match_of, settled
from tests.support.corpus_files import write_file
from tests.support.documents import document, shingles

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java 17 on the path"),
    # py4j closes its connections only when the garbage collector runs.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

MASTER = "local[2]"
PAGES = int(os.environ.get("NEARDUP_TEST_SPARK_PAGES", "1200"))


@pytest.fixture(scope="module", autouse=True)
def _java_for_short_runs() -> Iterator[None]:
    """A short run spends most of its time in the JIT compilers of Java, so use only the first of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield


@pytest.fixture(autouse=True)
def _connections_end_here() -> Iterator[None]:
    yield
    gc.collect()


def write_corpus(root: Path, *files: Sequence[Settled], version: str) -> None:
    corpus = Corpus(str(root))
    for some in files:
        first = corpus.end(0)
        batches = [read_batch(value) for value in write_documents(some, version)]
        write_file(corpus, CorpusFile(0, first, first + len(some)), batches)


def crawled(pages: int, signatures: Signatures) -> list[Settled]:
    """Return a sample crawl as settled by a stream that finds only the copies."""
    found: list[Settled] = []
    first_with: dict[bytes, Document] = {}
    for number, sampled in enumerate(sample_crawl(pages)):
        page, signature = sampled.page, signatures.of(sampled.page)
        if signature.fingerprint is None or signature.sketches is None:
            continue
        sketch = pack_sketch(signature.sketches, keep_spots=signatures.choices.keep_spots)
        each = Document(
            id=DocumentId(number // 2, number % 2, number),
            url=page.url,
            fetched_at=page.fetched_at,
            fingerprint=signature.fingerprint.value,
            checksums=signature.checksums,
            size=len(page.content),
            sketch=sketch,
        )
        earlier = first_with.setdefault(each.checksums.tokens, each)
        relation = each.checksums.relation_to(earlier.checksums)
        found.append(Settled(each, None if earlier is each or relation is None else match_of(earlier, relation)))
    return found


def on_one_machine(corpus: Path, directory: Path, options: Options) -> Report:
    sources = [make_source(name, source_directory(directory, name), options) for name in options.pair_sources]
    return recluster(Corpus(str(corpus)), directory, options, sources)


def results(directory: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: pyarrow.parquet.read_table(directory / f"{name}.parquet").to_pylist() for name in RESULTS}


def counts(report: Report) -> dict[str, Any]:
    """Return the counts of a report that do not depend on the engine."""
    changing = ("engine", "new_documents", "phases", "seconds")
    return {name: value for name, value in asdict(report).items() if name not in changing}


def test_all_sources_have_the_results_of_one_machine_on_a_sample_crawl(tmp_path: Path) -> None:
    signatures = Signatures(SignatureOptions(keep_spots=True), everything=False)
    some = crawled(PAGES, signatures)
    # The first documents are in the corpus twice, as after a crash.
    write_corpus(tmp_path / "corpus", some[: PAGES // 2], some[:99] + some[PAGES // 2 :], version=signatures.version)
    options = Options(
        signature_version=signatures.version,
        pair_sources=PAIR_SOURCES,
        common=200,
        large_cluster=10,
        bands=SignatureOptions().bands,
    )
    local = on_one_machine(tmp_path / "corpus", tmp_path / "local", options)
    spark = recluster_spark(str(tmp_path / "corpus"), tmp_path / "spark", options, MASTER)
    assert results(tmp_path / "spark") == results(tmp_path / "local")
    assert counts(spark) == counts(local)
    assert spark.documents == len(some)
    assert min(spark.edges, spark.contained, spark.overturned, len(spark.warnings), *spark.pairs.values()) > 0
    assert not (tmp_path / "spark" / "spark").exists()
    for name in ("report.json", "report.html", "index.sqlite"):
        assert (tmp_path / "spark" / name).exists()


def test_copies_without_sketches_common_shingles_and_a_later_run(tmp_path: Path) -> None:
    stream = shingles(1, 900)
    # A template is too common to generate pairs. Two pages share a little more, and are near if the template counts.
    own = [shingles(60 + number, 80) for number in range(11)]
    own += [np.concatenate([own[0][:20], shingles(80, 60)])]
    framed = [document(40 + number, np.concatenate([shingles(50, 120), each])) for number, each in enumerate(own)]
    first = document(1, stream[:200], tokens="a", url="http://a.example/long/way")
    light = document(0, stream[:200], tokens="a", url="https://a.example/")
    near = [document(2 + step, stream[60 * step : 60 * step + 200]) for step in range(1, 5)]
    alone = document(20, 20)
    held = document(21, stream[:900]), document(22, stream[600:800])
    copies = {0: match_of(document(30, 30), Relation.SAME_TEXT)}
    options = Options(
        signature_version="nd1", pair_sources=("shingles",), common=10, representative="https", rule="transitive"
    )
    options = replace(options, thresholds=replace(options.thresholds, resemblance=0.4))
    corpus, local, spark = (tmp_path / name for name in ("corpus", "local", "spark"))
    # Forgotten documents: one from which a copy has its sketch, and one without copies.
    gone = document(31, stream[100:300], tokens="gone"), document(33, 7)
    orphan = document(32, stream[100:300], tokens="gone")
    copies[32] = match_of(gone[0], Relation.SAME_TEXT)
    write_corpus(corpus, settled([first, *near[1:], alone, *held, *framed, *gone, orphan], copies), version="nd1")
    orders = ForgottenFile(1, 0, 0)
    Corpus(str(corpus)).prepare_forgotten(orders, Forgotten(np.array([each.id for each in gone])))
    Corpus(str(corpus)).publish(orders)
    on_one_machine(corpus, local, options)
    # The Spark engine continues from the overturned verdicts of the local one, so that revisions are equal, too.
    spark.mkdir()
    shutil.copy(local / "overturned.parquet", spark)
    write_corpus(corpus, settled([light, near[0]], copies), version="nd1")
    on_one_machine(corpus, local, options)
    recluster_spark(str(corpus), spark, options, MASTER)
    assert results(spark) == results(local)
    assert [
        (row["offset"], row["cluster_size"] > 1)
        for row in results(spark)["clusters"]
        if row["url"] in {each.url for each in (*gone, orphan)}
    ] == [(32, True)]
    assert {row["revision"] for row in results(spark)["overturned"]} == {2, 3}
    assert [row["b"] for row in results(spark)["edges"] if row["a"] == "0:40"] == ["0:51"]


def look_alike(size: int) -> list[NDArray[np.uint64]]:
    """Return two samples of one super shingle each that differ only in bits that postings do not store."""
    many = np.sort(shingles(5, 1 << 22))
    supers = ngrams(many, size)
    order = np.argsort(supers & KEPT)
    kept = supers[order] & KEPT
    place = np.flatnonzero(kept[1:] == kept[:-1])[0]
    return [many[first : first + size] for first in order[place : place + 2]]


def with_spots(each: Document, spots: dict[int, int]) -> Document:
    """Return the document with these spots and their counts."""
    sketch = np.concatenate([each.sketch, np.array([spot << 8 | count for spot, count in sorted(spots.items())], "u8")])
    sketch[0] |= np.uint64(len(spots) << 24)
    return replace(each, sketch=sketch)


def test_common_and_colliding_keys_are_treated_the_same(tmp_path: Path) -> None:
    options = Options(signature_version="nd1", pair_sources=("shingles", "supers", "spots"), common=4)
    documents = [document(number, some) for number, some in enumerate(look_alike(options.super_size))]
    # Three pages share one template and three share another. The templates are equal in the stored bits, so they are
    # common together. Their super shingles differ.
    template = shingles(6, 60) | np.uint64(1 << 63)
    for number, frame in enumerate([template] * 3 + [template ^ np.uint64(1 << 20)] * 3):
        own = shingles(10 + number, 5) >> np.uint64(1)
        documents.append(document(10 + number, np.concatenate([own, frame])))
    # One spot is in many pages but rarely more than once; the other one is in many pages twice.
    for number, bag in enumerate([{1: 3}] * 2 + [{1: 1, 2: 2}] * 5):
        documents.append(with_spots(document(20 + number, 20 + number), {**bag, 20 + number: 1}))
    corpus, local, spark = (tmp_path / name for name in ("corpus", "local", "spark"))
    write_corpus(corpus, settled(documents), version="nd1")
    expected = on_one_machine(corpus, local, options)
    assert counts(recluster_spark(str(corpus), spark, options, MASTER)) == counts(expected)
    assert results(spark) == results(local)
    assert expected.pairs == {"shingles": 0, "supers": 1 + 3 + 3, "spots": 1}
    assert expected.common_keys == {"shingles": 60, "supers": 0, "spots": 3}
    assert [(row["a"], row["b"]) for row in results(local)["edges"] if row["sources"] == "spots"] == [("0:20", "0:21")]


def test_components_of_many_links_equal_those_of_union_find(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    chain = np.stack([np.arange(40, 60), np.arange(41, 61)])
    scattered = np.sort(random.integers(100, 200, (2, 60)), axis=0)
    a, b = np.unique(np.concatenate([chain, scattered[:, scattered[0] < scattered[1]]], axis=1), axis=1)
    expected = leaders.components(200, a.astype(np.uint32), b.astype(np.uint32))
    with spark_session(MASTER, tmp_path, 1 << 30) as session:
        scratch = Scratch(session, tmp_path)
        scratch.set_partitions(200)
        edges = session.createDataFrame(list(zip(a.tolist(), b.tolist(), strict=True)), "a long, b long")
        for few in (0, edges.count()):
            found = [(row["row"], row["component"]) for row in components(edges, scratch, few).collect()]
            rows = np.unique(np.concatenate([a, b])).tolist()
            assert sorted(found) == [(row, int(expected[row])) for row in rows]


def test_two_concurrent_passes_are_refused(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", settled([document(0, 1)]), version="nd1")
    with exclusive_pass(tmp_path / "out" / WORK), pytest.raises(StateError, match="expected to be the only pass"):
        recluster_spark(str(tmp_path / "corpus"), tmp_path / "out", Options(signature_version="nd1"), MASTER)


def test_another_signature_version_is_refused(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", settled([document(0, 1)]), version="nd1")
    with pytest.raises(WrongState, match="expected signatures nd9, got nd1"):
        recluster_spark(str(tmp_path / "corpus"), tmp_path / "out", Options(signature_version="nd9"), MASTER)

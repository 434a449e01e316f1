"""Benchmark of the offline pass on generated documents (`made_corpus`): against peers, by size, and in resources.

    cluster_vs_best_peer    grouping of 100K documents by 16 bands of 8 values, against the faster of datasketch and
                            rensa with the same vectors and the same threshold
    default_vs_best_peer    the same documents with the default sources, shingles and fingerprints, against the same
                            peer: more work, and more duplicates found
    growth_exponent         the e of seconds ~ documents^e, for the whole pass with the default sources
    bytes_per_document      disk space of the pass, results included, at the largest size
    local_vs_spark          the whole pass with the default sources on 20K documents, against PySpark on local[2]

Grouping comprises all steps from sketches to clusters: copies, pairs, comparison, clusters. It does not include reading
the corpus, writing the results, or construction of a peer's objects; a whole pass includes reading and writing. Each
size runs in a process of its own, whose first, small pass is not measured.
"""

import multiprocessing
import resource
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from neardup.offline.corpus.corpus import Corpus
from neardup.offline.layout import source_directory
from neardup.offline.options import Options
from neardup.offline.pairs.sources import make_source
from neardup.offline.passes.recluster import recluster
from neardup.offline.report.report import Report
from neardup.offline.spark.engine import recluster_spark
from neardup.signatures.bands import BandFilter
from tests.bench import cluster_peers, made_corpus
from tests.bench.made_corpus import SIGNATURE
from tests.bench.result import Result

COMPARED: Final = 100_000
SPARK: Final = 20_000
ROUNDS: Final = 3
DEFAULT: Final = Options(signature_version=SIGNATURE).pair_sources
_NOT_GROUPING: Final = ("gather", "overturned", "results", "index")


class Measured(NamedTuple):
    """The best of several passes: seconds of the pass and of grouping, bytes on disk, peak memory in bytes.

    `grouped` is the number of documents that are not the first of their group by the transitive rule, which peers use.
    """

    seconds: float
    grouping: float
    disk: int
    memory: int
    grouped: int


def run(*, full: bool) -> list[Result]:
    """Run the benchmark. `full` uses 100K, 400K and 1.6M documents, the default is 25K, 50K and 100K."""
    sizes = (100_000, 400_000, 1_600_000) if full else (25_000, 50_000, 100_000)
    measured = {}
    peers: dict[str, tuple[float, int]] = {}
    for size in sizes:
        made = made_corpus.make(size)
        with tempfile.TemporaryDirectory() as directory:
            made_corpus.write(made, Corpus(f"{directory}/corpus"))
            measured[size] = _apart(Path(directory), DEFAULT, ROUNDS if size <= COMPARED else 1)
            if size == COMPARED:
                bands = _apart(Path(directory), ("bands",), ROUNDS)
                peers = _peers(made)
    local, spark = _engines(SPARK)
    best = min(peers, key=lambda name: peers[name][0])
    seconds, grouped = peers[best]
    about = f"{best}, {COMPARED:,} documents"
    largest = measured[sizes[-1]]
    exponent = np.polyfit(np.log(sizes), np.log([each.seconds for each in measured.values()]), 1)[0]
    return [
        Result("cluster_vs_best_peer", seconds / bands.grouping, "ratio", f"{about}, both by bands", goal=5),
        Result("default_vs_best_peer", seconds / measured[COMPARED].grouping, "ratio", about),
        Result("growth_exponent", float(exponent), "", f"{sizes} documents", goal=1.1, smaller_is_better=True),
        Result("bytes_per_document", largest.disk / sizes[-1], "bytes", f"{sizes[-1]:,} documents"),
        Result("grouped_by_bands", bands.grouped, "documents", f"{grouped:,} by {best}"),
        Result("grouped_by_default", measured[COMPARED].grouped, "documents", f"{grouped:,} by {best}"),
        *(Result(f"{name}_s", each, "s", f"{COMPARED:,} documents, grouping") for name, (each, _) in peers.items()),
        Result("bands_s", bands.grouping, "s", f"{COMPARED:,} documents, grouping"),
        Result("default_s", measured[COMPARED].grouping, "s", f"{COMPARED:,} documents, grouping"),
        *(Result("documents_per_s", round(n / each.seconds), "documents/s", f"{n:,}") for n, each in measured.items()),
        Result("local_vs_spark", spark / local, "ratio", f"Spark on local[2], {SPARK:,} documents, the whole pass"),
        Result("spark_documents_per_s", round(SPARK / spark), "documents/s", f"{SPARK:,}"),
        *(Result("peak_memory_mb", each.memory >> 20, "MB", f"{n:,} documents") for n, each in measured.items()),
    ]


def _peers(made: made_corpus.Made) -> dict[str, tuple[float, int]]:
    """Return by name the seconds of the best round and the number of documents that are not first of their group."""
    threshold = Options(signature_version=SIGNATURE).thresholds.resemblance
    found = {}
    for name, peer, rounds in (("rensa", cluster_peers.rensa, ROUNDS), ("datasketch", cluster_peers.datasketch, 1)):
        runs = [peer(made.mips, threshold) for _ in range(rounds)]
        grouped = int((runs[0][0] != np.arange(COMPARED)).sum())
        found[name] = min(seconds for _, seconds in runs), grouped
    return found


def _engines(size: int) -> tuple[float, float]:
    """Return the seconds of a whole pass over `size` documents, on one machine and on Spark on this machine."""
    with tempfile.TemporaryDirectory() as directory:
        made_corpus.write(made_corpus.make(size), Corpus(f"{directory}/corpus"))
        local = _apart(Path(directory), DEFAULT, ROUNDS).seconds
        # These seconds do not include the start of Spark.
        spark = recluster_spark(
            f"{directory}/corpus", Path(directory) / "spark", Options(signature_version=SIGNATURE), "local[2]"
        )
        return local, spark.seconds


def _apart(directory: Path, sources: Sequence[str], rounds: int) -> Measured:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measure, directory, sources, rounds).result()


def _measure(directory: Path, sources: Sequence[str], rounds: int) -> Measured:
    with tempfile.TemporaryDirectory() as small:
        made_corpus.write(made_corpus.make(3000), Corpus(f"{small}/corpus"))
        _pass(Path(small) / "corpus", Path(small) / "out", sources)
    reports = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=directory) as out:
            reports.append(_pass(directory / "corpus", Path(out), sources))
            disk = sum(path.stat().st_size for path in Path(out).rglob("*") if path.is_file())
    return Measured(
        min(report.seconds for report in reports),
        min(sum(p.seconds for p in report.phases if p.name not in _NOT_GROUPING) for report in reports),
        disk,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
        reports[0].documents - reports[0].transitive_clusters,
    )


def _pass(corpus: Path, directory: Path, names: Sequence[str]) -> Report:
    # Use the same number of bands as the peer.
    bands = BandFilter(k=cluster_peers.BANDS, s=made_corpus.M // cluster_peers.BANDS)
    options = Options(signature_version=SIGNATURE, pair_sources=tuple(names), bands=bands)
    sources = [make_source(name, source_directory(directory, name), options) for name in names]
    return recluster(Corpus(str(corpus)), directory, options, sources)

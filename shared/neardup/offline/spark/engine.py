"""The offline pass on Spark: the steps of the local engine over the same corpus, with equal results.

A run always covers the whole corpus; its intermediate data is deleted at the end. Results are single files that the
driver assembles in batches from the parts that Spark wrote. No other data that grows with the corpus is sent to the
driver.

    <directory>/clusters.parquet ...     results, index, report.json and report.html
    <directory>/spark/                   intermediate data of the current run
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from neardup.offline.clusters.clusters import TRANSITIVE
from neardup.offline.corpus.corpus import Corpus
from neardup.offline.layout import WORK
from neardup.offline.options import Options
from neardup.offline.passes.lock import exclusive_pass
from neardup.offline.queries.index_writer import build_index
from neardup.offline.report.files import write_report
from neardup.offline.report.report import Phase, Report
from neardup.offline.results.schemas import CLUSTERS, CONTAINED, EDGES, OVERTURNED
from neardup.offline.spark.clusters import contained_of, members_of, name_of, near_pairs, overturned_of, with_revisions
from neardup.offline.spark.components import components
from neardup.offline.spark.copies import find_copies
from neardup.offline.spark.documents import check_signatures, number_rows, read_corpus
from neardup.offline.spark.edges import compare_pairs, found_by, merge_sources, verify_pairs
from neardup.offline.spark.leading import find_leaders
from neardup.offline.spark.pairs import source_pairs
from neardup.offline.spark.report import counts_of_documents, counts_of_pairs, warnings_of
from neardup.offline.spark.session import Scratch, spark_session
from neardup.types import Relation
from neardup.util.atomic_file import replacing

ENGINE: Final = "spark"
_SCRATCH: Final = "spark"


def recluster_spark(corpus_root: str, directory: Path, options: Options, master: str = "local[*]") -> Report:
    """Cluster all documents of the corpus and write the results to the directory. May block for hours.

    All machines of the Spark cluster must reach the corpus and the directory under the same address. Raises StateError
    when another pass is running in the directory, or when the corpus cannot be read or has a different signature
    version than the options. Raises SettingsError when Spark cannot start.
    """
    check_signatures(Corpus(corpus_root), options.signature_version)
    scratch = directory.absolute() / _SCRATCH
    with exclusive_pass(directory / WORK):
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        try:
            with spark_session(master, scratch, options.memory_bytes) as session:
                return _SparkRun(session, corpus_root, directory, Scratch(session, scratch), options).run()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


class _SparkRun:
    def __init__(
        self, session: SparkSession, corpus_root: str, directory: Path, scratch: Scratch, options: Options
    ) -> None:
        self._session, self._corpus_root, self._directory = session, corpus_root, directory
        self._scratch, self._options = scratch, options
        self._phases: list[Phase] = []

    def run(self) -> Report:
        options, keep = self._options, self._scratch.keep
        with self._phase("gather"):
            rows = read_corpus(self._session, self._corpus_root)
            self._scratch.set_partitions(rows.count())
            documents = keep(number_rows(rows), "documents")
        with self._phase("copies"):
            copies = find_copies(documents, self._scratch)
            comparable = documents.where("length(sketch) > 0").join(copies, "row", "left_anti")
            sketches = keep(comparable.select("row", "fingerprint", "sketch"), "sketches")
        found, common_keys = {}, {}
        for name in options.pair_sources:
            with self._phase(f"pairs {name}"):
                pairs, common_keys[name] = source_pairs(name, sketches, options, self._scratch)
                found[name] = keep(pairs, f"pairs-{name}")
        with self._phase("edges"):
            held = keep(verify_pairs(merge_sources(found), sketches, options), "verified")
            edges, contained = held.where("edge").drop("edge", "a_in_b", "b_in_a"), contained_of(held)
        with self._phase("clusters"):
            connected = keep(components(edges, self._scratch), "connected")
            leaders = keep(self._leaders(connected, edges, sketches), "leaders")
            light = documents.drop("sketch", "fingerprint", "note")
            members = keep(members_of(light, copies, leaders, options.representative), "members")
        with self._phase("overturned"):
            overturned = keep(overturned_of(members, contained), "overturned")
            selected = overturned.where(F.col("relation") == str(Relation.CONTAINED)).select("a", "b")
            likeness = keep(compare_pairs(near_pairs(members).unionByName(selected).distinct(), sketches), "likeness")
            revisions = keep(with_revisions(overturned, self._previous_revisions(), documents), "said")
        with self._phase("results"):
            names = documents.select("row", name_of("partition", "offset").alias("name"))
            self._write("clusters", CLUSTERS, _clusters(members, likeness))
            self._write("contained", CONTAINED, _contained(contained, names))
            self._write("edges", EDGES, _edges(edges, names, options.pair_sources))
            self._write("overturned", OVERTURNED, _overturned(revisions, likeness))
        with self._phase("index"):
            build_index(self._directory)
        with self._phase("report"):
            documents_counted = counts_of_documents(members, connected)
            pairs_counted = counts_of_pairs(held, options.pair_sources)
            overturned_counted = revisions.where("relation is not null").count()
            warnings = warnings_of(members, sketches, options.large_cluster)
        report = Report(
            engine=ENGINE,
            signature_version=options.signature_version,
            new_documents=documents_counted["documents"],
            common_keys=common_keys,
            overturned=overturned_counted,
            warnings=warnings,
            phases=self._phases,
            seconds=sum(phase.seconds for phase in self._phases),
            **documents_counted,
            **pairs_counted,
        )
        write_report(self._directory, report)
        return report

    def _leaders(self, connected: DataFrame, edges: DataFrame, sketches: DataFrame) -> DataFrame:
        if self._options.rule == TRANSITIVE:
            return connected.withColumnRenamed("component", "leader")
        return find_leaders(
            connected.join(sketches, "row"),
            edges.join(connected.withColumnRenamed("row", "a"), "a"),
            connected.count(),
            self._options.thresholds.resemblance,
        )

    def _previous_revisions(self) -> DataFrame | None:
        """Return the revisions of the last run in this directory, by either engine."""
        path = self._directory.absolute() / "overturned.parquet"
        return self._session.read.parquet(path.as_uri()) if path.exists() else None

    def _write(self, name: str, schema: pyarrow.Schema, frame: DataFrame) -> None:
        """Assemble the parts of a result into one file, which replaces the previous file only when it is complete."""
        self._scratch.keep(frame.select(*schema.names), f"result-{name}")
        with (
            replacing(self._directory / f"{name}.parquet") as file,
            pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
        ):
            # The numbers of parts follow the order of the rows.
            for part in sorted(self._scratch.path(f"result-{name}").glob("part-*")):
                with pyarrow.parquet.ParquetFile(part) as parquet:
                    for batch in parquet.iter_batches(1 << 16):
                        writer.write_batch(batch.cast(schema))

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        started, written = time.perf_counter(), self._scratch.written
        yield
        self._phases.append(Phase(name, time.perf_counter() - started, self._scratch.written - written))


def _clusters(members: DataFrame, likeness: DataFrame) -> DataFrame:
    like = likeness.select(F.col("a").alias("kept"), F.col("b").alias("with"), "resemblance")
    near = F.col("relation") == str(Relation.NEAR)
    return (
        members.withColumn("with", F.when(near, F.col("first.kept")))
        .join(like, ["kept", "with"], "left")
        .orderBy("first.row", "row")
        .select(
            *("timestamp", "partition", "offset", "url", "fetched_at", "size", "relation", "cluster_size"),
            F.col("first.name").alias("cluster"),
            F.coalesce("resemblance", F.lit(1.0)).cast("float").alias("resemblance"),
            F.col("representative.name").alias("representative"),
            F.col("representative.url").alias("representative_url"),
        )
    )


def _contained(contained: DataFrame, names: DataFrame) -> DataFrame:
    return _named(contained, names, inner="document", outer="container").orderBy("inner", "outer")


def _edges(edges: DataFrame, names: DataFrame, sources: Sequence[str]) -> DataFrame:
    found = [F.when(found_by(bit), F.lit(source)) for bit, source in enumerate(sources)]
    named = _named(edges.withColumnsRenamed({"a": "x", "b": "y"}), names, x="a", y="b")
    return named.withColumn("sources", F.concat_ws("+", *found)).orderBy("x", "y")


def _overturned(revisions: DataFrame, likeness: DataFrame) -> DataFrame:
    compared_with = F.col("relation").isin(str(Relation.NEAR), str(Relation.CONTAINED))
    like = likeness.select("a", "b", "resemblance", F.col("a_in_b").alias("containment"))
    joined = revisions.join(like, ["a", "b"], "left")
    for name in ("resemblance", "containment"):
        copy = F.when(F.col("relation").isNotNull(), F.lit(1.0).cast("float"))
        joined = joined.withColumn(name, F.when(compared_with, F.col(name)).otherwise(copy))
    return joined.orderBy("row")


def _named(frame: DataFrame, names: DataFrame, **sides: str) -> DataFrame:
    """Add the names of documents next to their rows."""
    for row, name in sides.items():
        frame = frame.join(names.select(F.col("row").alias(row), F.col("name").alias(name)), row)
    return frame

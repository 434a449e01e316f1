"""One run of the offline pass: copies → pairs per source → edges → clusters → overturned → results → index.

A run compares the documents that are new since the previous run with each other and with all earlier ones, and
recomputes the clusters that they touch. The results equal those of one run over all documents, with one exception:
edges found through a shingle remain when the shingle becomes common later.

Edges can disappear: a new document that precedes its copies in the order of all pages is kept instead of the copy that
was kept before, and gets edges of its own.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import CorruptState
from neardup.offline.clusters.clusters import Leaders, PreviousClusters, find_clusters
from neardup.offline.clusters.copies import Copies, find_copies
from neardup.offline.clusters.edges import Contained, Edges, find_edges
from neardup.offline.clusters.overturned import Revisions, find_overturned, next_revisions, read_revisions
from neardup.offline.clusters.representative import representatives
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.options import Options
from neardup.offline.pairs.pair_source import Pairs, PairSource
from neardup.offline.passes.phases import PhaseOutput, Phases, Progress, RunKey
from neardup.offline.queries.index_reader import FILE as INDEX_FILE
from neardup.offline.queries.index_writer import build_index
from neardup.offline.report.counting import make_report
from neardup.offline.report.report import Report
from neardup.offline.results.writing import FILES, write_clusters, write_contained, write_edges, write_overturned

COPIES: Final = "copies"
EDGES: Final = "edges"
CLUSTERS: Final = "clusters"
OVERTURNED: Final = "overturned"
RESULTS: Final = "results"
INDEX: Final = "index"


class SourceCounts(NamedTuple):
    """Counts of one run by the name of the pair source."""

    pairs: dict[str, int]
    common_keys: dict[str, int]


class PassRun:
    """One run. It writes results to `directory` and outputs of phases to `work`. Raises StateError."""

    def __init__(
        self,
        directory: Path,
        work: Path,
        documents: ColumnStore,
        *,
        run: RunKey,
        options: Options,
        sources: Sequence[PairSource],
        progress: Progress,
    ) -> None:
        if len(documents) != run.rows:
            raise CorruptState(f"{work}: expected {run.rows} documents, got {len(documents)}: run again with --full")
        self._directory, self._documents, self._run = directory, documents, run
        self._options, self._sources, self._progress = options, sources, progress
        self._phases = Phases(work, run, progress)

    @staticmethod
    def is_finished(work: Path, run: RunKey) -> bool:
        """Return whether all phases of a run are finished."""
        return Phases(work, run, lambda phase, done, of: None).is_done(INDEX)

    def run(self) -> Report:
        """Run the phases that are not finished, and return the report."""
        copies = self._copies()
        counts, edges, contained, touched = self._edges(copies)
        leaders = self._clusters(copies, edges, touched)
        revisions = self._overturned(copies, leaders, contained)
        self._results(copies, leaders, edges, contained, revisions)
        self._index()
        return make_report(
            self._documents,
            copies,
            leaders,
            revisions,
            new_documents=self._run.rows - self._run.first,
            edges=edges.a.size,
            contained=contained.inner.size,
            pairs=counts.pairs,
            common_keys=counts.common_keys,
            large_cluster=self._options.large_cluster,
            phases=self._phases.done,
        )

    def _copies(self) -> Copies:
        def find() -> PhaseOutput:
            return PhaseOutput({}, find_copies(self._documents)._asdict())

        return Copies(**self._phases.run(COPIES, find).arrays)

    def _edges(self, copies: Copies) -> tuple[SourceCounts, Edges, Contained, NDArray[np.uint32]]:
        """Return counts per source, all edges and containments, and the rows that have gained or lost edges."""
        if self._phases.is_done(EDGES):
            found = self._phases.load(EDGES)
        else:
            pairs = [(source.name, *self._pairs(source, copies)) for source in self._sources]
            found = self._phases.run(EDGES, lambda: self._verified(copies, pairs))
            for source in self._sources:
                self._phases.drop(_pairs_of(source))
        arrays = found.arrays
        return SourceCounts(**found.about), _edges_in(arrays), _contained_in(arrays), arrays["touched"]

    def _pairs(self, source: PairSource, copies: Copies) -> tuple[Pairs, int]:
        """Return the new pairs, and the number of keys that were too common to use."""
        name = _pairs_of(source)

        def find() -> PhaseOutput:
            pairs, counted = source.pairs(
                self._documents, copies.comparable, self._run.first, lambda done, of: self._progress(name, done, of)
            )
            return PhaseOutput({"common_keys": counted.common_keys}, pairs._asdict())

        found = self._phases.run(name, find, mapped=True)
        return Pairs(**found.arrays), found.about["common_keys"]

    def _verified(self, copies: Copies, sources: Sequence[tuple[str, Pairs, int]]) -> PhaseOutput:
        new, new_contained = find_edges(
            self._documents,
            [(name, pairs) for name, pairs, _ in sources],
            self._options,
            lambda done, of: self._progress(EDGES, done, of),
        )
        touched = [new.a, new.b]
        before = self._phases.previous(EDGES)
        if before is not None:
            old, old_contained = _edges_in(before.arrays), _contained_in(before.arrays)
            holds = copies.comparable[old.a] & copies.comparable[old.b]
            touched += [old.a[~holds], old.b[~holds]]
            new = Edges(*_joined(old, holds, new))
            holds = copies.comparable[old_contained.inner] & copies.comparable[old_contained.outer]
            new_contained = Contained(*_joined(old_contained, holds, new_contained))
        counts = SourceCounts(
            pairs={name: int(pairs.a.size) for name, pairs, _ in sources},
            common_keys={name: common for name, _, common in sources},
        )
        arrays = {**new._asdict(), **new_contained._asdict(), "touched": np.unique(np.concatenate(touched))}
        return PhaseOutput(counts._asdict(), arrays)

    def _clusters(self, copies: Copies, edges: Edges, touched: NDArray[np.uint32]) -> Leaders:
        def find() -> PhaseOutput:
            last = self._phases.previous(CLUSTERS)
            before = None if last is None else PreviousClusters(last.arrays["cluster"], touched)
            leaders = find_clusters(self._documents, copies, edges, self._options, before)
            return PhaseOutput({}, leaders._asdict())

        return Leaders(**self._phases.run(CLUSTERS, find).arrays)

    def _overturned(self, copies: Copies, leaders: Leaders, contained: Contained) -> Revisions:
        def find() -> PhaseOutput:
            before = read_revisions(self._directory / "overturned.parquet", self._documents)
            found = find_overturned(self._documents, copies, leaders.cluster, contained)
            return PhaseOutput({}, next_revisions(self._documents, found, before)._asdict())

        return Revisions(**self._phases.run(OVERTURNED, find).arrays)

    def _results(
        self, copies: Copies, leaders: Leaders, edges: Edges, contained: Contained, revisions: Revisions
    ) -> None:
        rule = self._options.representative
        if self._phases.is_done(RESULTS) and self._phases.values(RESULTS)["representative"] != rule:
            self._phases.drop(INDEX)
            self._phases.drop(RESULTS)

        def write() -> PhaseOutput:
            standing = representatives(self._documents, leaders.cluster, rule)
            write_clusters(self._directory, self._documents, copies, leaders.cluster, standing)
            write_contained(self._directory, self._documents, contained)
            write_edges(self._directory, self._documents, edges, [source.name for source in self._sources])
            write_overturned(self._directory, self._documents, copies, revisions)
            return PhaseOutput({"representative": rule}, {})

        self._phases.run(RESULTS, write, writes=[self._directory / f"{name}.parquet" for name in FILES])

    def _index(self) -> None:
        def build() -> PhaseOutput:
            build_index(self._directory, self._documents)
            return PhaseOutput({}, {})

        self._phases.run(INDEX, build, writes=[self._directory / INDEX_FILE])


def _pairs_of(source: PairSource) -> str:
    return f"pairs {source.name}"


def _edges_in(arrays: Mapping[str, NDArray[Any]]) -> Edges:
    return Edges(*(arrays[name] for name in Edges._fields))


def _contained_in(arrays: Mapping[str, NDArray[Any]]) -> Contained:
    return Contained(*(arrays[name] for name in Contained._fields))


def _joined(old: Sequence[NDArray[Any]], holds: NDArray[np.bool_], new: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Concatenate the old values that still hold and the new values."""
    return [np.concatenate([before[holds], now]) for before, now in zip(old, new, strict=True)]

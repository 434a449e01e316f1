"""Checks of the final state of a simulation against an oracle that compares every page with all earlier pages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from neardup.deployment.deployment import Deployment
from neardup.deployment.topics import topic_specs
from neardup.errors import RecordError
from neardup.log import Partition, PlainRecord
from neardup.log.memory import MemoryLog
from neardup.matching.rule import Thresholds
from neardup.messages.pages import canary_note, document_id, read_page
from neardup.messages.verdicts import read_verdict
from neardup.offline.corpus.archive import Archive
from neardup.offline.corpus.columns import gather
from neardup.offline.corpus.corpus import Corpus
from neardup.runtime.stage import Stage
from neardup.signatures.signature import Signature, SignatureOptions, Signatures
from neardup.stream.aggregator.stage import Aggregator
from neardup.types import DocumentId, Kind, Verdict
from tests.support.oracle import Oracle


class End:
    """A simulation with no work left.

    `stages` has the latest stage of each partition; `directory` is for intermediate files of the checks.
    """

    def __init__(
        self, deployment: Deployment, log: MemoryLog, stages: Sequence[tuple[Partition, Stage]], directory: Path
    ) -> None:
        self._settings, self._topics = deployment.settings, deployment.topics
        self._log, self._stages, self._directory = log, stages, directory

    def check(self) -> Counter[str]:
        """Count the verdicts of each kind. Raises AssertionError if a guarantee is broken."""
        pages, canaries, bad = self._pages()
        oracle = Oracle(self._settings.hamming, self._settings.bands != "none", Thresholds.of(self._settings))
        expected = oracle.final_verdicts(pages)
        last = self._last_verdicts(self._topics.verdicts)
        letters = self._log.end(Partition(self._topics.dead_letters, 0))
        assert letters >= len(bad), "a bad page got no dead letter"
        assert last.keys() == {str(page) for page in pages}, "a page got no verdict"
        by_name = {str(page): page for page in pages}
        for name, verdict in last.items():
            kind, matches = expected[by_name[name]]
            assert verdict.verdict == kind, f"{name}: expected {kind}, got {verdict.verdict}"
            if kind is Kind.DUPLICATE:
                assert verdict.duplicate_of is not None
                assert verdict.duplicate_of.document in by_name, f"{name} names a document that is not a page"
                target = by_name[verdict.duplicate_of.document]
                assert target < by_name[name], f"{name} names a later page"
                assert target in matches, f"{name} names a page that it does not duplicate"
        for partition, stage in self._stages:
            if isinstance(stage, Aggregator):
                assert stage.pending == 0, f"{partition}: {stage.pending} documents are still pending"
        settled = {name for name, verdict in last.items() if verdict.verdict is not Kind.SKIPPED}
        assert self._archived() == settled, "the corpus and the verdicts contain different documents"
        counts = self._check_canaries(oracle, pages, canaries)
        counts.update(f"{verdict.verdict}" for verdict in last.values())
        counts["revision"] += sum(verdict.revision for verdict in last.values())
        return counts

    def _check_canaries(
        self,
        oracle: Oracle,
        pages: dict[DocumentId, Signature],
        canaries: dict[DocumentId, tuple[Signature, str]],
    ) -> Counter[str]:
        """Check that each canary has a verdict on the canaries topic, and is found if the oracle finds its original."""
        verdicts = self._last_verdicts(self._topics.canaries)
        assert verdicts.keys() == {str(canary) for canary in canaries}, "a canary got no verdict"
        by_name = {str(page): signature for page, signature in pages.items()}
        counts: Counter[str] = Counter()
        for canary, (signature, note) in canaries.items():
            verdict = verdicts[str(canary)]
            original = by_name[note.split(" to ")[1].partition(",")[0]]
            if oracle.relation(signature, original) is not None:
                assert verdict.verdict is Kind.DUPLICATE, f"{canary} was missed: {note}"
            if verdict.duplicate_of is not None:
                matched = by_name[verdict.duplicate_of.document]
                assert oracle.relation(signature, matched) is not None, f"{canary} names a page that it does not match"
            counts["canary found" if verdict.verdict is Kind.DUPLICATE else "canary missed"] += 1
        return counts

    def _pages(
        self,
    ) -> tuple[dict[DocumentId, Signature], dict[DocumentId, tuple[Signature, str]], list[PlainRecord]]:
        """Return the pages, the canaries with their notes, and the records that are not pages."""
        pages, canaries, bad = {}, {}, []
        signatures = Signatures(SignatureOptions.of(self._settings))
        for record in self._records(self._topics.pages):
            place, note = document_id(record), canary_note(record)
            try:
                signature = signatures.of(read_page(record))
            except RecordError:
                bad.append(record)
                continue
            if note is None:
                pages[place] = signature
            else:
                canaries[place] = signature, note
        return pages, canaries, bad

    def _archived(self) -> set[str]:
        for _, stage in self._stages:
            if isinstance(stage, Archive):
                stage.checkpoint()
        documents = gather(Corpus(self._settings.corpus), self._directory / "gathered")
        names = [str(documents.document(row)) for row in range(len(documents))]
        assert len(set(names)) == len(names), "the corpus contains a document twice"
        return set(names)

    def _last_verdicts(self, topic: str) -> dict[str, Verdict]:
        named: dict[tuple[str, int], Verdict] = {}
        last: dict[str, Verdict] = {}
        for record in self._records(topic):
            assert record.value is not None
            verdict = replace(read_verdict(record.value), latency_ms=None)
            before = named.setdefault((verdict.document, verdict.revision), verdict)
            assert before == verdict, f"{verdict.document} revision {verdict.revision} has two verdicts"
            if verdict.document not in last or verdict.revision > last[verdict.document].revision:
                last[verdict.document] = verdict
        return last

    def _records(self, topic: str) -> Iterator[PlainRecord]:
        for spec in topic_specs(self._settings):
            if spec.name == topic:
                for number in range(spec.partitions):
                    yield from self._log.read(Partition(topic, number), 0, 1_000_000)

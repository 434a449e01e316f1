"""The rules of an owner, independent of messages and of the log.

- A document is settled once. An earlier document with the same tokens settles it at once; otherwise it is settled when
  one of its batches is complete and all evidence has arrived.
- A match counts whether it is found before or after the document is settled.
- A document can only be a duplicate of an earlier document.
- A canary is compared with pages, but no page is compared with a canary (`canaries.py`).
"""

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from neardup import metrics
from neardup.index.plan.routing import owner_of
from neardup.matching.found_by import NO_TABLE, Candidates, FoundBy, found_by_table, with_bands
from neardup.matching.match import Match, better, can_better, match
from neardup.matching.rule import Thresholds
from neardup.messages.answers import Answers
from neardup.messages.questions import Evidence, Question
from neardup.messages.settled import Settled
from neardup.signatures.bands import BandFilter
from neardup.signatures.packed_sketch import bands_in_common
from neardup.stream.aggregator.canaries import PendingCanaries
from neardup.stream.aggregator.directory import Directory, KnownDocument, url_hash
from neardup.stream.aggregator.keys import DocumentKey
from neardup.stream.aggregator.pending import PendingDocuments
from neardup.types import BatchId, Document, Kind, Relation, SkippedPage

FORGOTTEN = "forgotten before it was settled"


class SettledVerdict(NamedTuple):
    """A verdict to be written."""

    document: Document
    kind: Kind
    revision: int
    match: Match | None


class Outbox:
    """Everything that an owner emits while it processes a batch of messages."""

    def __init__(self) -> None:
        self.verdicts: list[SettledVerdict] = []
        self.canary_verdicts: list[SettledVerdict] = []
        self.skipped: list[SkippedPage] = []
        self.settled: list[Settled] = []
        """Documents for the offline pass."""
        self.forgotten = array("q")
        """Document ids, three numbers each. An array, because an order to expire can forget millions of documents."""
        self.questions: dict[int, list[Question]] = {}
        """Questions by the owner that receives them."""
        self.evidence: dict[int, list[Evidence]] = {}
        """Evidence by the owner that sent the question."""
        self.candidates = 0
        """Number of candidates compared."""


class Owner:
    """Registers, compares, settles and revises documents. Every method handles one item and emits to an outbox."""

    def __init__(
        self,
        directory: Directory,
        pending: PendingDocuments,
        canaries: PendingCanaries,
        *,
        number: int,
        owners: int,
        k: int,
        tables: int,
        bands: BandFilter | None,
        thresholds: Thresholds,
        most_variants: int,
        most_candidates: int,
    ) -> None:
        self.directory = directory
        self.pending = pending
        self.canaries = canaries
        self._number = number
        self._owners = owners
        self._k = k
        self._buckets = found_by_table(tables)
        self._bands = bands
        self._thresholds = thresholds
        self._most_variants = most_variants
        self._most_candidates = most_candidates

    def register(self, document: Document, batch: BatchId, expected: Sequence[int], outbox: Outbox) -> None:
        """Register a document of a batch that shard partitions `expected` will answer. Repeated calls are harmless."""
        if document.id.is_canary:
            self._register_canary(document, batch, expected, outbox)
            return
        variants = self.directory.variants(document.fingerprint)
        twin = None
        for known in variants:
            if known.document.id == document.id:
                if known.kind is None:
                    self.pending.add(batch, expected, known.key)
                return
            if known.document.checksums.tokens == document.checksums.tokens:
                twin = known
        if self.directory.has_marker(document.fingerprint, document.id):
            return
        if twin is not None and twin.document.id < document.id:
            self._settle_copy(document, twin, outbox)
            return
        new = KnownDocument(document)
        for known in list(variants):
            if known is not twin:
                new.match = self._compare(document, known, NO_TABLE, new.match, outbox)
        self.directory.add(new)
        if twin is not None:
            self._replace_twin(twin, new, outbox)
        self.pending.add(batch, expected, new.key)

    def on_answers(self, answers: Answers, table: int, outbox: Outbox) -> None:
        """Record the answers of a shard of `table`, and request evidence for the documents of completed batches."""
        for key, candidates in self.pending.on_answers(answers, table):
            known = self._find(key)
            assert known is not None, f"{key} is pending but unknown"
            self._request_evidence(known, self._nearest(known.document, candidates), outbox)

    def on_question(self, question: Question, asker: int, outbox: Outbox) -> None:
        """Emit evidence about a document of the owner `asker`."""
        document = question.document
        best = self._best_match(document, question.candidates, None, outbox)
        evidence = Evidence(document.id, document.fingerprint, tuple(question.candidates), best)
        outbox.evidence.setdefault(asker, []).append(evidence)

    def on_evidence(self, evidence: Evidence, outbox: Outbox) -> None:
        """Record evidence, and settle its document if no other evidence is missing. Repeated calls are harmless."""
        known = self._find(DocumentKey(evidence.fingerprint, evidence.document))
        if known is None:
            return
        self._record_match(known, evidence.match, outbox)
        if self.pending.on_evidence(known.key, evidence.candidates) and known.kind is None:
            self._settle(known, outbox)

    def forget(self, url: str, outbox: Outbox) -> None:
        """Drop every document of a url. A pending document gets the verdict "skipped", so every page gets a verdict."""
        gone = set()
        for key in self.directory.documents_of_url(url):
            known = self.directory.find(*key)
            if known is None or known.document.url == url:
                self._forget(key, url_hash(url), outbox)
                gone.add(key.document)
        if gone:
            self.directory.forget_first_copies(lambda document: document in gone)
        metrics.FORGOTTEN.inc(len(gone))

    def expire(self, before: int, outbox: Outbox) -> None:
        """Drop every document whose page has a timestamp below `before`, in milliseconds."""
        count = 0
        for key, hash_of_url in self.directory.older_than(before):
            self._forget(key, hash_of_url, outbox)
            count += 1
        self.directory.forget_first_copies(lambda document: document.timestamp < before)
        metrics.FORGOTTEN.inc(count)

    def _find(self, key: DocumentKey) -> KnownDocument | None:
        if key.document.is_canary:
            return self.canaries.find(key)
        return self.directory.find(*key)

    def _register_canary(self, document: Document, batch: BatchId, expected: Sequence[int], outbox: Outbox) -> None:
        new = KnownDocument(document)
        if self.directory.has_marker(*new.key):
            return
        if self.canaries.find(new.key) is None:
            for known in self.directory.variants(document.fingerprint):
                new.match = self._compare(document, known, NO_TABLE, new.match, outbox)
            self.canaries.add(new)
        self.pending.add(batch, expected, new.key)

    def _settle_copy(self, document: Document, twin: KnownDocument, outbox: Outbox) -> None:
        """Settle a document that has the same tokens as an earlier one, without waiting for answers."""
        found = self._match(document, twin)
        assert found is not None, "documents with equal tokens match"
        if found.relation is not Relation.IDENTICAL:
            first = self.directory.first_copy_with(document.checksums.content)
            if first is not None and first[0] < document.id:
                found = replace(found, id=first[0], url=first[1], relation=Relation.IDENTICAL)
            else:
                self.directory.set_first_copy(document)
        self.directory.add_copy(document)
        outbox.verdicts.append(SettledVerdict(document, Kind.DUPLICATE, 0, found))
        outbox.settled.append(Settled(document, found))

    def _replace_twin(self, twin: KnownDocument, first: KnownDocument, outbox: Outbox) -> None:
        """Make `twin` a copy of `first`, which has the same tokens and is earlier."""
        self._record_match(twin, self._match(twin.document, first), outbox)
        if twin.kind is None:
            self._settle(twin, outbox)
        if twin in self.directory.variants(twin.document.fingerprint):
            self.directory.reduce_to_marker(twin)
        if twin.document.checksums.content != first.document.checksums.content:
            self.directory.set_first_copy(twin.document)

    def _request_evidence(self, known: KnownDocument, candidates: Candidates, outbox: Outbox) -> None:
        """Compare a document with the candidates of this owner, and send questions to the owners of the others."""
        outbox.candidates += len(candidates)
        by_owner: dict[int, Candidates] = {}
        for candidate, found_by in candidates.items():
            by_owner.setdefault(owner_of(candidate, self._owners), {})[candidate] = found_by
        own = by_owner.pop(self._number, None)
        if own is not None:
            self._record_match(known, self._best_match(known.document, own, known.match, outbox), outbox)
        if not by_owner:
            self._settle(known, outbox)
            return
        self.pending.await_evidence(known.key, [each for remote in by_owner.values() for each in remote])
        for owner, remote in by_owner.items():
            outbox.questions.setdefault(owner, []).append(Question(known.document, remote))

    def _nearest(self, document: Document, candidates: Candidates) -> Candidates:
        """Return the nearest candidates, at most as many as the limit allows.

        Equally near candidates are ranked by the number of tables that found them.
        """
        if len(candidates) <= self._most_candidates:
            return candidates
        metrics.CAPPED_CANDIDATES.inc(len(candidates) - self._most_candidates)
        ranked = sorted(
            candidates,
            key=lambda each: ((each ^ document.fingerprint).bit_count(), -candidates[each].bit_count(), each),
        )
        return {each: candidates[each] for each in ranked[: self._most_candidates]}

    def _best_match(
        self, document: Document, candidates: Candidates, best: Match | None, outbox: Outbox
    ) -> Match | None:
        """Return the best of `best` and the matches of a document among the variants of its candidates.

        A variant that is later than the document may get the document as its match.
        """
        for candidate, found_by in candidates.items():
            for known in self.directory.variants(candidate):
                best = self._compare(document, known, found_by, best, outbox)
        return best

    def _compare(
        self, document: Document, known: KnownDocument, found_by: FoundBy, best: Match | None, outbox: Outbox
    ) -> Match | None:
        """Compare two documents; return the better of `best` and their match if `known` is the earlier of the two.

        If `known` is the later one, the match is recorded there.
        """
        other = known.document
        is_earlier = other.id < document.id
        # Skip comparisons that could not change any verdict.
        if is_earlier and not can_better(best, document, other):
            return best
        if not is_earlier and (other.id == document.id or known.kind is Kind.DUPLICATE):
            return best
        confirmed = self._confirm(document, other, found_by)
        if confirmed is None:
            return best
        if is_earlier:
            return better(best, self._match(document, known, confirmed))
        self._record_match(known, match(other, document, self._thresholds, found_by=confirmed), outbox)
        return best

    def _confirm(self, a: Document, b: Document, found_by: FoundBy) -> FoundBy | None:
        """Return the tables and bands in which the two documents match; None if there are none.

        A shard finds fingerprints, not documents. A document whose fingerprint is in the bucket may itself share no
        band with the queried document. The sketches of the two documents decide, so the result does not depend on
        which of them was registered first.
        """
        are_close = (a.fingerprint ^ b.fingerprint).bit_count() <= self._k
        if self._bands is None:
            return found_by if are_close else None
        in_bucket = found_by & self._buckets
        if are_close and not in_bucket:
            return found_by
        shared = bands_in_common(a.sketch, b.sketch, self._bands)
        if not are_close and not shared:
            return None
        # The shard reports only that the two share a bucket; their sketches show which one.
        return with_bands(found_by, shared, self._buckets) if in_bucket else found_by

    def _match(self, document: Document, earlier: KnownDocument, found_by: FoundBy = NO_TABLE) -> Match | None:
        return match(document, earlier.document, self._thresholds, found_by=found_by, group=earlier.match)

    def _record_match(self, known: KnownDocument, found: Match | None, outbox: Outbox) -> None:
        """Record a match with an earlier document. A unique document is revised; a duplicate keeps its match."""
        if found is None or known.kind is Kind.DUPLICATE:
            return
        known.match = better(known.match, found)
        if known.document.id.is_canary:
            self.canaries.mark_changed(known)
            return
        self.directory.mark_changed(known.document.fingerprint)
        if known.kind is Kind.UNIQUE:
            known.kind = Kind.DUPLICATE
            known.revision += 1
            metrics.REVISIONS.inc()
            outbox.verdicts.append(SettledVerdict(known.document, known.kind, known.revision, known.match))

    def _settle(self, known: KnownDocument, outbox: Outbox) -> None:
        self.pending.remove(known.key)
        known.kind = Kind.UNIQUE if known.match is None else Kind.DUPLICATE
        if known.document.id.is_canary:
            self.canaries.remove(known)
            self.directory.add_marker(*known.key)
            outbox.canary_verdicts.append(SettledVerdict(known.document, known.kind, 0, known.match))
            return
        self.directory.mark_changed(known.document.fingerprint)
        outbox.verdicts.append(SettledVerdict(known.document, known.kind, known.revision, known.match))
        outbox.settled.append(Settled(known.document, known.match))
        self._drop_surplus(known.document.fingerprint)

    def _drop_surplus(self, fingerprint: int) -> None:
        """Drop variants beyond the limit, latest first, until the latest is pending."""
        variants = self.directory.variants(fingerprint)
        while len(variants) > self._most_variants:
            latest = max(variants, key=lambda known: known.document.id)
            if latest.kind is None:
                return
            self.directory.reduce_to_marker(latest)
            metrics.DROPPED_VARIANTS.inc()

    def _forget(self, key: DocumentKey, hash_of_url: bytes, outbox: Outbox) -> None:
        known = self.directory.find(*key)
        if known is not None and known.kind is None:
            self.pending.remove(key)
            page = known.document
            outbox.skipped.append(SkippedPage(page.id, page.url, page.fetched_at, FORGOTTEN))
        self.directory.forget(*key, hash_of_url)
        outbox.forgotten.extend(key.document)

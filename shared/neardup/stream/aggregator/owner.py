"""The rules that an owner keeps, free of messages.

- A document is settled once: by a copy that it stands after, or when the first complete batch it is in has its
  evidence.
- Whatever is learned counts, before settling and after it.
- A document only ever points at an earlier one.
- A canary is compared as a page is, and no page with it (`canaries.py`).
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from neardup import metrics
from neardup.index.plan.owners import owner_of
from neardup.matching.match import Match, better, can_better, match
from neardup.matching.rule import Thresholds
from neardup.messages.answers import Answers
from neardup.messages.questions import Evidence, Question
from neardup.messages.settled import Settled
from neardup.signatures.bands import BandFilter
from neardup.signatures.packed_sketch import bands_in_common
from neardup.stream.aggregator.canaries import Canaries
from neardup.stream.aggregator.directory import Directory, KnownDocument, url_hash
from neardup.stream.aggregator.pending import DocumentKey, PendingDocuments
from neardup.types import BatchId, Document, DocumentId, Kind, Relation, SkippedPage

FORGOTTEN = "forgotten before it was settled"


class SettledVerdict(NamedTuple):
    """A verdict to be said."""

    document: Document
    kind: Kind
    revision: int
    match: Match | None


class Outbox:
    """What a batch of messages made an owner say."""

    def __init__(self) -> None:
        self.told: list[SettledVerdict] = []
        self.canaries: list[SettledVerdict] = []
        self.skipped: list[SkippedPage] = []
        self.settled: list[Settled] = []
        self.forgotten = array("q")
        """Ids, one after the other: all that is old may be millions."""
        self.questions: dict[int, list[Question]] = {}
        self.evidence: dict[int, list[Evidence]] = {}
        self.candidates = 0


class Owner:
    """Registers, joins, compares, settles, revises. Every method takes one message's worth and says it to an outbox."""

    def __init__(
        self,
        directory: Directory,
        joins: PendingDocuments,
        canaries: Canaries,
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
        self.joins = joins
        self.canaries = canaries
        self._number = number
        self._owners = owners
        self._k = k
        self._buckets = 1 << tables
        self._bands = bands
        self._thresholds = thresholds
        self._most_variants = most_variants
        self._most_candidates = most_candidates

    def register(self, document: Document, batch: BatchId, expected: Sequence[int], outbox: Outbox) -> None:
        """Take a document: new, known and still waiting, or known and settled."""
        if document.id.is_canary:
            self._register_canary(document, batch, expected, outbox)
            return
        variants = self.directory.variants(document.fingerprint)
        twin = None
        for known in variants:
            if known.document.id == document.id:
                if known.kind is None:
                    self.joins.add(batch, expected, _waiting(document))
                return
            if known.document.checksums.tokens == document.checksums.tokens:
                twin = known
        if self.directory.was_seen(document.fingerprint, document.id):
            return
        if twin is not None and twin.document.id < document.id:
            self._settle_copy(document, twin, outbox)
            return
        new = KnownDocument(document)
        for known in list(variants):
            if known is not twin:
                new.match = self._meet(document, known, 0, new.match, outbox)
        self.directory.add(new)
        if twin is not None:
            self._take_over(new, twin, outbox)
        self.joins.add(batch, expected, _waiting(document))

    def answered(self, answers: Answers, table: int, outbox: Outbox) -> None:
        """A shard has answered: ask the owners of what was found near each document whose batch is now complete."""
        for waiting, near in self.joins.answered(answers, table):
            known = self._find(waiting)
            assert known is not None, f"{waiting} waits but is unknown"
            self._inquire(known, self._nearest(known.document, near), outbox)

    def asked(self, question: Question, asker: int, outbox: Outbox) -> None:
        """Another owner asks about a document of its own."""
        document = question.document
        best = self._best(document, question.candidates, None, outbox)
        evidence = Evidence(document.id, document.fingerprint, tuple(question.candidates), best)
        outbox.evidence.setdefault(asker, []).append(evidence)

    def heard(self, evidence: Evidence, outbox: Outbox) -> None:
        """The evidence that was asked for, or a repetition of it."""
        known = self._find(DocumentKey(evidence.fingerprint, evidence.document))
        if known is None:
            return
        self._learn(known, evidence.match, outbox)
        if self.joins.heard(_waiting(known.document), evidence.candidates) and known.kind is None:
            self._settle(known, outbox)

    def forget(self, url: str, outbox: Outbox) -> None:
        """Drop every document of a url. A page that waits is told so: every page gets a verdict."""
        gone = set()
        for fingerprint, document in self.directory.of_url(url):
            known = self.directory.find(fingerprint, document)
            if known is None or known.document.url == url:
                self._forget(fingerprint, document, url_hash(url), outbox)
                gone.add(document)
        if gone:
            self.directory.forget_contents(lambda document: document in gone)
        metrics.FORGOTTEN.inc(len(gone))

    def expire(self, before: int, outbox: Outbox) -> None:
        """Drop every document whose page came before this time."""
        count = 0
        for fingerprint, document, hash_of_url in self.directory.older_than(before):
            self._forget(fingerprint, document, hash_of_url, outbox)
            count += 1
        self.directory.forget_contents(lambda document: document.timestamp < before)
        metrics.FORGOTTEN.inc(count)

    def _find(self, waiting: DocumentKey) -> KnownDocument | None:
        if waiting.document.is_canary:
            return self.canaries.find(waiting)
        return self.directory.find(*waiting)

    def _register_canary(self, document: Document, batch: BatchId, expected: Sequence[int], outbox: Outbox) -> None:
        waiting = _waiting(document)
        if self.directory.was_seen(*waiting):
            return
        if self.canaries.find(waiting) is None:
            new = KnownDocument(document)
            for known in self.directory.variants(document.fingerprint):
                new.match = self._meet(document, known, 0, new.match, outbox)
            self.canaries.add(new)
        self.joins.add(batch, expected, waiting)

    def _settle_copy(self, document: Document, twin: KnownDocument, outbox: Outbox) -> None:
        """The same tokens as an earlier document: nothing to wait for."""
        found = self._match(document, twin)
        assert found is not None, "the same tokens and no match"
        if found.relation is not Relation.IDENTICAL:
            first = self.directory.first_with_content(document.checksums.content)
            if first is not None and first[0] < document.id:
                found = found._replace(id=first[0], url=first[1], relation=Relation.IDENTICAL)
            else:
                self.directory.set_first_with_content(document)
        self.directory.add_copy(document)
        outbox.told.append(SettledVerdict(document, Kind.DUPLICATE, 0, found))
        outbox.settled.append(Settled(document, found))

    def _take_over(self, first: KnownDocument, twin: KnownDocument, outbox: Outbox) -> None:
        """`first` has the tokens of `twin` and stands before it: the twin is a copy of it from now on."""
        self._learn(twin, self._match(twin.document, first), outbox)
        if twin.kind is None:
            self._settle(twin, outbox)
        if twin in self.directory.variants(twin.document.fingerprint):
            self.directory.demote(twin)
        if twin.document.checksums.content != first.document.checksums.content:
            self.directory.set_first_with_content(twin.document)

    def _inquire(self, known: KnownDocument, near: dict[int, int], outbox: Outbox) -> None:
        outbox.candidates += len(near)
        remote: dict[int, dict[int, int]] = {}
        for candidate, found_by in near.items():
            remote.setdefault(owner_of(candidate, self._owners), {})[candidate] = found_by
        mine = remote.pop(self._number, None)
        if mine is not None:
            self._learn(known, self._best(known.document, mine, known.match, outbox), outbox)
        if not remote:
            self._settle(known, outbox)
            return
        self.joins.ask(_waiting(known.document), [each for candidates in remote.values() for each in candidates])
        for owner, candidates in remote.items():
            outbox.questions.setdefault(owner, []).append(Question(known.document, candidates))

    def _nearest(self, document: Document, near: dict[int, int]) -> dict[int, int]:
        if len(near) <= self._most_candidates:
            return near
        metrics.CAPPED_CANDIDATES.inc(len(near) - self._most_candidates)
        ranked = sorted(
            near, key=lambda each: ((each ^ document.fingerprint).bit_count(), -near[each].bit_count(), each)
        )
        return {each: near[each] for each in ranked[: self._most_candidates]}

    def _best(self, document: Document, near: dict[int, int], best: Match | None, outbox: Outbox) -> Match | None:
        """The best match of a document among the variants of these fingerprints, and what was the best before.

        Later variants learn of the document.
        """
        for candidate, found_by in near.items():
            for known in self.directory.variants(candidate):
                best = self._meet(document, known, found_by, best, outbox)
        return best

    def _meet(
        self, document: Document, known: KnownDocument, found_by: int, best: Match | None, outbox: Outbox
    ) -> Match | None:
        """Compare both ways by order: an earlier one comes back if it is the best match so far, a later one learns."""
        other = known.document
        is_earlier = other.id < document.id
        # Nothing is compared that could change nothing.
        if is_earlier and not can_better(best, document, other):
            return best
        if not is_earlier and (other.id == document.id or known.kind is Kind.DUPLICATE):
            return best
        confirmed = self._confirmed(document, other, found_by)
        if confirmed is None:
            return best
        if is_earlier:
            return better(best, self._match(document, known, confirmed))
        self._learn(known, match(other, document, self._thresholds, found_by=confirmed), outbox)
        return best

    def _confirmed(self, a: Document, b: Document, found_by: int) -> int | None:
        """What found two documents, with the bands in which they met; None if the tables do not let them meet.

        A bucket has the fingerprint of a document that shares a band. Another document with that fingerprint
        need not share it; whether it is compared must not depend on which of the two was known first.
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
        # The shard said that they met in some bucket; from their sketches it is known in which.
        return found_by & self._buckets - 1 | shared * self._buckets if in_bucket else found_by

    def _match(self, document: Document, earlier: KnownDocument, found_by: int = 0) -> Match | None:
        return match(document, earlier.document, self._thresholds, found_by=found_by, group=earlier.match)

    def _learn(self, known: KnownDocument, found: Match | None, outbox: Outbox) -> None:
        """Evidence that a document duplicates an earlier one. A settled unique page is told again; others are not."""
        if found is None or known.kind is Kind.DUPLICATE:
            return
        known.match = better(known.match, found)
        if known.document.id.is_canary:
            self.canaries.touch(known)
            return
        self.directory.touch(known.document.fingerprint)
        if known.kind is Kind.UNIQUE:
            known.kind = Kind.DUPLICATE
            known.revision += 1
            metrics.REVISIONS.inc()
            outbox.told.append(SettledVerdict(known.document, known.kind, known.revision, known.match))

    def _settle(self, known: KnownDocument, outbox: Outbox) -> None:
        self.joins.leave(_waiting(known.document))
        known.kind = Kind.UNIQUE if known.match is None else Kind.DUPLICATE
        if known.document.id.is_canary:
            self.canaries.remove(known)
            self.directory.mark(*_waiting(known.document))
            outbox.canaries.append(SettledVerdict(known.document, known.kind, 0, known.match))
            return
        self.directory.touch(known.document.fingerprint)
        outbox.told.append(SettledVerdict(known.document, known.kind, known.revision, known.match))
        outbox.settled.append(Settled(known.document, known.match))
        self._drop_surplus(known.document.fingerprint)

    def _drop_surplus(self, fingerprint: int) -> None:
        """Keep the first few variants of a fingerprint; one that is not settled stays until it is."""
        variants = self.directory.variants(fingerprint)
        while len(variants) > self._most_variants:
            latest = max(variants, key=lambda known: known.document.id)
            if latest.kind is None:
                return
            self.directory.demote(latest)
            metrics.DROPPED_VARIANTS.inc()

    def _forget(self, fingerprint: int, document: DocumentId, hash_of_url: bytes, outbox: Outbox) -> None:
        known = self.directory.find(fingerprint, document)
        if known is not None and known.kind is None:
            self.joins.leave(_waiting(known.document))
            page = known.document
            outbox.skipped.append(SkippedPage(page.id, page.url, page.fetched_at, FORGOTTEN))
        self.directory.forget(fingerprint, document, hash_of_url)
        outbox.forgotten.extend(document)


def _waiting(document: Document) -> DocumentKey:
    return DocumentKey(document.fingerprint, document.id)

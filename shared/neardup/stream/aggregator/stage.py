"""The aggregator: owns fingerprints and tells the crawler about each page.

A document is registered, waits for the shards' answers, then for the evidence of the owners of what they found, and is
settled: unique, or a duplicate of an earlier document. Settled is not the end: evidence that comes later, about a page
that came late but stands earlier in the order, makes a unique page a duplicate, and its verdict is revised. The other
way round never happens, so a page has at most two verdicts.

Everything here is a function of the inbox up to an offset; `owner.py` holds the rules, this module the messages.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from neardup import metrics
from neardup.errors import StateError
from neardup.index.plan.plan import Plan
from neardup.index.plan.routing import Routing
from neardup.log import Output, Record
from neardup.matching.rule import Thresholds
from neardup.messages import wire
from neardup.messages.answers import Answers, read_answers
from neardup.messages.fields import require_plan
from neardup.messages.forgotten import write_forgotten
from neardup.messages.orders import Expire, Forget, read_order
from neardup.messages.questions import (
    Evidence,
    Question,
    read_evidence,
    read_questions,
    write_evidence,
    write_questions,
)
from neardup.messages.registrations import Registrations, read_registrations, read_skipped
from neardup.messages.seeds import RETIRED, Entry, SeedEntries, read_seed_entries, stop_at_retired
from neardup.messages.settled import write_documents
from neardup.messages.topics import Topics
from neardup.monitoring.recall import Recall
from neardup.runtime.stage import Stage, Waves, decoded
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions
from neardup.stream.aggregator.canaries import Canaries
from neardup.stream.aggregator.directory import Directory, check_entry
from neardup.stream.aggregator.owner import Outbox, Owner
from neardup.stream.aggregator.pending import PendingDocuments
from neardup.stream.aggregator.store import VERSION as LAYOUT
from neardup.stream.aggregator.store import Store
from neardup.stream.aggregator.verdict_writer import VerdictWriter
from neardup.types import Kind, SkippedPage

KINDS: Final = ("registrations", "skipped", "answers", "questions", "evidence", "control", "seed-entries", RETIRED)
"""What an inbox carries."""

PLANLESS: Final = ("skipped", "control", RETIRED)
"""Those that mean the same under every plan."""
_GAUGES: Final = (
    metrics.PENDING_DOCUMENTS,
    metrics.PENDING_BATCHES,
    metrics.OLDEST_PENDING,
    metrics.DIRECTORY_DOCUMENTS,
    metrics.OWNER_CACHE_BYTES,
)
Message = (
    Registrations
    | list[SkippedPage]
    | Answers
    | tuple[int, list[Question]]
    | list[Evidence]
    | Forget
    | Expire
    | SeedEntries
)


class Aggregator(Stage):
    """One owner: its directory, its joins, and the messages in and out."""

    name = "aggregator"

    def __init__(
        self, *, settings: Settings, plan: Plan, partition: int, identity: str, clock: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._topics = Topics.under(settings.prefix, settings.generation)
        self._plan = plan
        self._choices = SignatureOptions.of(settings)
        self._routing = Routing(plan)
        self._telling = VerdictWriter(
            self._topics, settings.verdict_format, plan.signature_version, self._routing.names
        )
        self._partition = partition
        self._identity = identity
        self._clock = clock
        self._recall = Recall("canary", partition)
        self._store: Store
        self._owner: Owner
        self._next = 0

    @property
    def waiting(self) -> int:
        """Documents that are not settled yet."""
        return len(self._owner.joins)

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """(fingerprint, entry) of all that the owner knows, as seeds of other owners; what waits is not among it."""
        self._owner.directory.flush()
        return self._owner.directory.entries()

    def open(self, directory: Path) -> int | None:
        """Where the store says."""
        self._store = Store(directory, self._identity)
        try:
            self._owner = self._loaded()
            self._next = self._store.offset
        except StateError:
            self._store.close()
            raise
        # A partition without traffic reports its size, too.
        self._measure_state()
        self._measure_cache()
        return self._next

    def _loaded(self) -> Owner:
        return Owner(
            Directory(self._store),
            PendingDocuments(self._store),
            Canaries(self._store),
            number=self._partition,
            owners=self._settings.owners,
            k=self._plan.k,
            tables=len(self._plan.tables),
            bands=self._choices.bands if self._plan.bands else None,
            thresholds=Thresholds.of(self._settings),
            most_variants=self._settings.variants,
            most_candidates=self._settings.candidates,
        )

    def process(self, records: Sequence[Record]) -> Waves:
        """One wave: verdicts, documents for re-clustering, questions to other owners and evidence for them."""
        messages, rejected = decoded(records, self._read)
        outbox = Outbox()
        for _, message in messages:
            self._take(message, outbox)
            self._owner.directory.trim()
        self._owner.directory.flush_settled()
        self._next = records[-1].offset + 1
        self._measure(outbox)
        return Waves([self._outputs(outbox)], rejected)

    @property
    def is_full(self) -> bool:
        """RocksDB lets nobody else in this process work while it writes, so it is given little at a time."""
        return self._store.unsaved_bytes >= self._settings.checkpoint_bytes

    def checkpoint(self) -> int:
        """Directory, joins, canaries and offset, in one write."""
        return self.freeze()()

    def freeze(self) -> Callable[[], int]:
        """The same, and only the packing of it here."""
        self._owner.directory.flush()
        self._owner.joins.flush()
        self._owner.canaries.flush()
        self._measure_cache()
        offset, write = self._next, self._store.freeze(self._next)

        def save() -> int:
            write()
            return offset

        return save

    def close(self) -> None:
        """Release the store."""
        self._store.close()
        self._recall.close()
        metrics.withdraw((str(self._partition),), *_GAUGES)

    def _read(self, record: Record) -> Message:
        kind, body = wire.decode_any(record.value, KINDS)
        if kind not in PLANLESS:
            require_plan(body, self._plan.digest)
        match kind:
            case "registrations":
                return read_registrations(body, self._plan.partitions, self._choices.m)
            case "skipped":
                return read_skipped(body)
            case "answers":
                return read_answers(body, self._plan.partitions)
            case "questions":
                return read_questions(body, self._settings.owners, self._choices.m)
            case "evidence":
                return read_evidence(body)
            case "seed-entries":
                return read_seed_entries(body, LAYOUT, lambda entry: check_entry(entry, self._choices.m))
            case "retired":
                stop_at_retired(body, self._settings.generation)
        return read_order(body)

    def _take(self, message: Message, outbox: Outbox) -> None:
        match message:
            case Registrations(batch, expected, documents):
                for document in documents:
                    self._owner.register(document, batch, expected, outbox)
            case Answers():
                self._owner.answered(message, self._routing.table_number(message.partition), outbox)
            case (int(asker), list(questions)):
                for question in questions:
                    self._owner.asked(question, asker, outbox)
            case SeedEntries(entries):
                self._owner.directory.restore(entries)
            case Forget(url):
                self._owner.forget(url, outbox)
            case Expire(before):
                self._owner.expire(before, outbox)
            case list():
                for each in message:
                    if isinstance(each, SkippedPage):
                        outbox.skipped.append(each)
                    else:
                        self._owner.heard(each, outbox)

    def _outputs(self, outbox: Outbox) -> list[Output]:
        outputs = self._telling.outputs(outbox, self._clock() * 1000)
        inbox, plan = self._topics.inbox, self._plan.digest
        for owner, questions in sorted(outbox.questions.items()):
            outputs += [
                Output(inbox, owner, None, value) for value in write_questions(questions, self._partition, plan)
            ]
        for owner, evidence in sorted(outbox.evidence.items()):
            outputs += [Output(inbox, owner, None, value) for value in write_evidence(evidence, plan)]
        batches = write_documents(outbox.settled, self._plan.signature_version)
        forgotten = write_forgotten(outbox.forgotten)
        outputs += [Output(self._topics.documents, None, None, value) for value in chain(batches, forgotten)]
        return outputs

    def _measure(self, outbox: Outbox) -> None:
        for told in outbox.canaries:
            self._recall.check(told.kind is Kind.DUPLICATE)
        metrics.CANDIDATES.inc(outbox.candidates)
        metrics.PAGE_BYTES.inc(sum(told.document.size for told in outbox.told if told.revision == 0))
        # A page becomes a duplicate at most once.
        metrics.DUPLICATE_BYTES.inc(sum(told.document.size for told in outbox.told if told.kind is Kind.DUPLICATE))
        self._measure_state()

    def _measure_state(self) -> None:
        joins, partition = self._owner.joins, str(self._partition)
        metrics.PENDING_DOCUMENTS.labels(partition).set(len(joins))
        metrics.PENDING_BATCHES.labels(partition).set(joins.batches)
        metrics.DIRECTORY_DOCUMENTS.labels(partition).set(self._owner.directory.documents)
        oldest = joins.oldest()
        metrics.OLDEST_PENDING.labels(partition).set(0 if oldest is None else max(0.0, self._clock() - oldest / 1000))

    def _measure_cache(self) -> None:
        """Separate from `_measure_state`, because RocksDB takes longer to answer than a small batch takes."""
        cached = self._owner.directory.cached_bytes + self._store.cached_bytes
        metrics.OWNER_CACHE_BYTES.labels(str(self._partition)).set(cached)

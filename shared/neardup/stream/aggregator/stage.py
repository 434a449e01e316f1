"""The stage of the aggregator: one owner of fingerprints, which emits the verdicts on their documents.

A document is registered, waits for the answers of shards and then for evidence from the owners of its candidates, and
is settled as unique or as a duplicate of an earlier document. A page that arrives late can still be earlier in the
order of all pages. If a settled unique page turns out to be a duplicate of such a page, its verdict is revised. A
duplicate never becomes unique, so a page has at most two verdicts.

The state is a function of the inbox up to an offset. `owner.py` contains the rules; this module handles the messages.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, assert_never

from neardup import metrics
from neardup.errors import StateError
from neardup.index.plan.plan import Plan
from neardup.index.plan.routing import Routing
from neardup.log import Output, Record
from neardup.matching.rule import Thresholds
from neardup.messages.answers import Answers
from neardup.messages.forgotten import write_forgotten
from neardup.messages.formats import MessageContext
from neardup.messages.orders import Expire, Forget
from neardup.messages.questions import EvidenceBatch, Questions, write_evidence, write_questions
from neardup.messages.registrations import Registrations, SkippedPages
from neardup.messages.registry import INBOX, InboxMessage
from neardup.messages.seeds import Entry, SeedEntries
from neardup.messages.settled import write_documents
from neardup.messages.topics import Topics
from neardup.monitoring.recall import Recall
from neardup.runtime.stage import Stage, Waves, decoded
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions
from neardup.stream.aggregator.canaries import PendingCanaries
from neardup.stream.aggregator.directory import Directory, check_seed
from neardup.stream.aggregator.owner import Outbox, Owner
from neardup.stream.aggregator.pending import PendingDocuments
from neardup.stream.aggregator.store import Store
from neardup.stream.aggregator.verdict_writer import VerdictWriter
from neardup.types import Kind

_GAUGES: Final = (
    metrics.PENDING_DOCUMENTS,
    metrics.PENDING_BATCHES,
    metrics.OLDEST_PENDING,
    metrics.DIRECTORY_DOCUMENTS,
    metrics.OWNER_CACHE_BYTES,
)


class Aggregator(Stage):
    """One owner: its directory, its pending documents, and its messages in and out."""

    name = "aggregator"

    def __init__(
        self, *, settings: Settings, plan: Plan, partition: int, identity: str, clock: Callable[[], float]
    ) -> None:
        """`identity` names the partition in the store; `clock` returns the time in seconds, for latencies only."""
        self._settings = settings
        self._topics = Topics.under(settings.prefix, settings.generation)
        self._plan = plan
        self._signature = SignatureOptions.of(settings)
        self._routing = Routing(plan)
        self._context = MessageContext(
            plan=plan.digest,
            generation=settings.generation,
            partitions=plan.partitions,
            owners=settings.owners,
            mips=self._signature.m,
        )
        self._verdict_writer = VerdictWriter(
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
    def pending(self) -> int:
        """Number of documents that are not settled."""
        return len(self._owner.pending)

    def seed_entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield (fingerprint, entry) of the whole directory, as seeds of other owners. Nothing may be pending."""
        self._owner.directory.flush()
        return self._owner.directory.entries()

    def open(self, directory: Path) -> int | None:
        """Open the store; return the offset of its last checkpoint."""
        self._store = Store(directory, self._identity)
        try:
            self._owner = self._load_owner()
            self._next = self._store.offset
        except StateError:
            self._store.close()
            raise
        # A partition without traffic reports its size, too.
        self._measure_state()
        self._measure_cache()
        return self._next

    def _load_owner(self) -> Owner:
        return Owner(
            Directory(self._store),
            PendingDocuments(self._store),
            PendingCanaries(self._store),
            number=self._partition,
            owners=self._settings.owners,
            k=self._plan.k,
            tables=len(self._plan.tables),
            bands=self._signature.bands if self._plan.bands else None,
            thresholds=Thresholds.of(self._settings),
            most_variants=self._settings.variants,
            most_candidates=self._settings.candidates,
        )

    def process(self, records: Sequence[Record]) -> Waves:
        """Return one wave: verdicts, documents for the offline pass, and questions and evidence for other owners."""
        messages, rejected = decoded(records, self._read)
        outbox = Outbox()
        for _, message in messages:
            self._handle(message, outbox)
            self._owner.directory.evict()
        self._owner.directory.flush_settled()
        self._next = records[-1].offset + 1
        self._update_metrics(outbox)
        return Waves([self._outputs(outbox)], rejected)

    @property
    def is_full(self) -> bool:
        """True when a checkpoint is due. Writes to RocksDB block the process, so unsaved changes must stay small."""
        return self._store.unsaved_bytes >= self._settings.checkpoint_bytes

    def checkpoint(self) -> int:
        """Save the directory, pending documents, canaries and offset in one write. Return the offset."""
        return self.freeze()()

    def freeze(self) -> Callable[[], int]:
        """Pack the changes for a checkpoint; the returned function writes them."""
        self._owner.directory.flush()
        self._owner.pending.flush()
        self._owner.canaries.flush()
        self._measure_cache()
        offset, write = self._next, self._store.freeze(self._next)

        def save() -> int:
            write()
            return offset

        return save

    def close(self) -> None:
        """Close the store, and withdraw the gauges of this partition."""
        self._store.close()
        self._recall.close()
        metrics.withdraw((str(self._partition),), *_GAUGES)

    def _read(self, record: Record) -> InboxMessage:
        message = INBOX.read(record.value, self._context)
        if isinstance(message, SeedEntries):
            check_seed(message, self._context.mips)
        return message

    def _handle(self, message: InboxMessage, outbox: Outbox) -> None:
        match message:
            case Registrations():
                for document in message.documents:
                    self._owner.register(document, message.batch, message.expected, outbox)
            case Answers():
                self._owner.on_answers(message, self._routing.table_number(message.partition), outbox)
            case Questions():
                for question in message.questions:
                    self._owner.on_question(question, message.asker, outbox)
            case EvidenceBatch():
                for evidence in message.evidence:
                    self._owner.on_evidence(evidence, outbox)
            case SkippedPages():
                outbox.skipped += message.pages
            case Forget():
                self._owner.forget(message.url, outbox)
            case Expire():
                self._owner.expire(message.before, outbox)
            case SeedEntries():
                self._owner.directory.restore(message.entries)
            case _:
                assert_never(message)

    def _outputs(self, outbox: Outbox) -> list[Output]:
        outputs = self._verdict_writer.write(outbox, self._clock() * 1000)
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

    def _update_metrics(self, outbox: Outbox) -> None:
        for verdict in outbox.canary_verdicts:
            self._recall.check(verdict.kind is Kind.DUPLICATE)
        metrics.CANDIDATES.inc(outbox.candidates)
        metrics.PAGE_BYTES.inc(sum(each.document.size for each in outbox.verdicts if each.revision == 0))
        # A page becomes a duplicate at most once.
        metrics.DUPLICATE_BYTES.inc(sum(each.document.size for each in outbox.verdicts if each.kind is Kind.DUPLICATE))
        self._measure_state()

    def _measure_state(self) -> None:
        pending, partition = self._owner.pending, str(self._partition)
        metrics.PENDING_DOCUMENTS.labels(partition).set(len(pending))
        metrics.PENDING_BATCHES.labels(partition).set(pending.batches)
        metrics.DIRECTORY_DOCUMENTS.labels(partition).set(self._owner.directory.documents)
        oldest = pending.oldest_timestamp()
        metrics.OLDEST_PENDING.labels(partition).set(0 if oldest is None else max(0.0, self._clock() - oldest / 1000))

    def _measure_cache(self) -> None:
        """Set the gauge of cached bytes. Querying RocksDB takes longer than a small batch, so batches skip this."""
        cached = self._owner.directory.cached_bytes + self._store.cached_bytes
        metrics.OWNER_CACHE_BYTES.labels(str(self._partition)).set(cached)

"""Pending documents of an owner, which wait for answers of shards or for evidence of other owners.

A document can wait in several batches, because a restarted featurizer cuts batches at other offsets while a paused
one may still send its own. The first complete batch settles the document and removes it from all others. Pending
documents are part of the owner's checkpointed state.

    J batch                          shard partitions that have not answered, pending documents
    Q fingerprint document           candidates whose owners have not sent evidence

`candidates.py` stores the candidates found so far.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgpack

from neardup.matching.found_by import Candidates, found_by_table
from neardup.messages.answers import Answers
from neardup.stream.aggregator.candidates import CandidateStore
from neardup.stream.aggregator.keys import DocumentKey, pack_key, unpack_key
from neardup.stream.aggregator.store import Store
from neardup.types import BatchId, DocumentId

_BATCH: Final = struct.Struct(">qqq")


@dataclass(slots=True)
class _PendingBatch:
    missing: set[int]
    """Shard partitions that have not answered."""
    documents: set[DocumentKey] = field(default_factory=set)


class PendingDocuments:
    """All pending documents of an owner. They depend only on the messages received; `flush` writes the changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batches: dict[BatchId, _PendingBatch] = {}
        self._batches_of: dict[DocumentKey, set[BatchId]] = {}
        self._with_fingerprint: dict[int, set[DocumentKey]] = {}
        self._candidates = CandidateStore(store)
        self._awaiting_evidence: dict[DocumentKey, set[int]] = {}
        self._changed: set[BatchId | DocumentKey] = set()
        self._stored: set[BatchId | DocumentKey] = set()
        """Entries in the store. Most entries are removed before they are saved, and need no deletion in the store."""
        self._load()

    def __len__(self) -> int:
        """Return the number of pending documents."""
        return len(self._batches_of) + len(self._awaiting_evidence)

    @property
    def batches(self) -> int:
        """Number of incomplete batches."""
        return len(self._batches)

    def oldest_timestamp(self) -> int | None:
        """Return the timestamp of the page that has been pending longest, or None. Canaries are ignored."""
        # A dictionary keeps the order of insertion, so its first page has been pending longest.
        oldest = [
            next((each.document.timestamp for each in pending if not each.document.is_canary), None)
            for pending in (self._batches_of, self._awaiting_evidence)
        ]
        return min((timestamp for timestamp in oldest if timestamp is not None), default=None)

    def add(self, batch: BatchId, expected: Sequence[int], key: DocumentKey) -> None:
        """Make a document wait until these shard partitions answer a batch, unless it already waits for evidence."""
        if key in self._awaiting_evidence:
            return
        pending = self._batches.get(batch)
        if pending is None:
            pending = self._batches[batch] = _PendingBatch(set(expected))
        pending.documents.add(key)
        self._batches_of.setdefault(key, set()).add(batch)
        self._with_fingerprint.setdefault(key.fingerprint, set()).add(key)
        self._changed.add(batch)

    def on_answers(self, answers: Answers, table: int) -> list[tuple[DocumentKey, Candidates]]:
        """Record the answers of a shard of `table`; return the documents of completed batches with their candidates.

        The returned documents are no longer pending.
        """
        pairs = zip(answers.query.tolist(), answers.found.tolist(), strict=True)
        self._candidates.add(pairs, found_by_table(table), self._with_fingerprint)
        complete: list[tuple[DocumentKey, Candidates]] = []
        for batch in answers.batches:
            pending = self._batches.get(batch)
            if pending is None:
                continue
            pending.missing.discard(answers.partition)
            self._changed.add(batch)
            if not pending.missing:
                # Sorted by document id, because the order of a set is not deterministic.
                ready = sorted(pending.documents, key=lambda each: each.document)
                complete += [(each, self._candidates.get(each.fingerprint)) for each in ready]
                for each in ready:
                    self.remove(each)
        self._candidates.spill()
        return complete

    def await_evidence(self, key: DocumentKey, candidates: Iterable[int]) -> None:
        """Make a document wait for evidence about these candidates."""
        self._awaiting_evidence[key] = set(candidates)
        self._changed.add(key)

    def on_evidence(self, key: DocumentKey, candidates: Iterable[int]) -> bool:
        """Record evidence about these candidates; return whether the evidence about the document is now complete."""
        missing = self._awaiting_evidence.get(key)
        if missing is None:
            return False
        missing.difference_update(candidates)
        self._changed.add(key)
        if missing:
            return False
        del self._awaiting_evidence[key]
        return True

    def remove(self, key: DocumentKey) -> None:
        """Remove a document from all batches, and from the documents that wait for evidence."""
        for batch in self._batches_of.pop(key, ()):
            pending = self._batches[batch]
            pending.documents.discard(key)
            self._changed.add(batch)
            if not pending.documents:
                del self._batches[batch]
        same_fingerprint = self._with_fingerprint.get(key.fingerprint)
        if same_fingerprint is not None:
            same_fingerprint.discard(key)
            if not same_fingerprint:
                del self._with_fingerprint[key.fingerprint]
                self._candidates.remove(key.fingerprint)
        if self._awaiting_evidence.pop(key, None) is not None:
            self._changed.add(key)

    def flush(self) -> None:
        """Write changes to the store; they are durable when the store is saved."""
        self._candidates.flush()
        for changed in self._changed:
            value: Any
            match changed:
                case BatchId():
                    key, batch = b"J" + _BATCH.pack(*changed), self._batches.get(changed)
                    value = (
                        None if batch is None else [sorted(batch.missing), [_flat(each) for each in batch.documents]]
                    )
                case DocumentKey():
                    key = b"Q" + pack_key(*changed)
                    missing = self._awaiting_evidence.get(changed)
                    value = None if missing is None else sorted(missing)
            if value is not None:
                self._store.put(key, msgpack.packb(value))
                self._stored.add(changed)
            elif changed in self._stored:
                self._store.delete(key)
                self._stored.remove(changed)
        self._changed.clear()

    def _load(self) -> None:
        for key, packed in self._store.scan(b"J"):
            batch = BatchId(*_BATCH.unpack(key[1:]))
            missing, rows = msgpack.unpackb(packed)
            self._stored.add(batch)
            for fingerprint, *document in rows:
                self.add(batch, missing, DocumentKey(fingerprint, DocumentId(*document)))
        for key, packed in self._store.scan(b"Q"):
            document_key = unpack_key(key[1:])
            self._awaiting_evidence[document_key] = set(msgpack.unpackb(packed))
            self._stored.add(document_key)
        self._changed.clear()


def _flat(key: DocumentKey) -> tuple[int, ...]:
    return (key.fingerprint, *key.document)

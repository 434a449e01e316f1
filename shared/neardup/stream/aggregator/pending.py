"""Joins: documents that wait for the answers of shards, and then for the evidence of other owners.

A document may wait in several batches: a restarted featurizer cuts its batches elsewhere, and a paused one may go on
sending. The first batch that is complete settles it, and it leaves all others. What waits is part of the owner's state.

    J batch                          shard partitions still to answer, documents that wait
    Q fingerprint document           fingerprints whose owners are still to give evidence

`candidates.py` has what was found near them so far.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgpack

from neardup.messages.answers import Answers
from neardup.stream.aggregator.candidates import CandidateStore
from neardup.stream.aggregator.store import Store
from neardup.types import BatchId, DocumentId

_BATCH: Final = struct.Struct(">qqq")
_PLACE: Final = struct.Struct(">Qqqq")


class DocumentKey(NamedTuple):
    """A document that waits, by its name in the directory."""

    fingerprint: int
    document: DocumentId


@dataclass(slots=True)
class _Join:
    missing: set[int]
    waiting: set[DocumentKey] = field(default_factory=set)


class PendingDocuments:
    """Everything that waits at one owner. A function of the messages it was told of; saved with `flush`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._joins: dict[BatchId, _Join] = {}
        self._batches_of: dict[DocumentKey, set[BatchId]] = {}
        self._waiting_with: dict[int, set[DocumentKey]] = {}
        self._near = CandidateStore(store)
        self._asked: dict[DocumentKey, set[int]] = {}
        self._changed: set[BatchId | DocumentKey] = set()
        self._stored: set[BatchId | DocumentKey] = set()
        """What the store has. Most come and go between two saves, and need not be removed from it."""
        self._load()

    def __len__(self) -> int:
        """Documents that wait."""
        return len(self._batches_of) + len(self._asked)

    @property
    def batches(self) -> int:
        """Batches that are not complete."""
        return len(self._joins)

    def oldest(self) -> int | None:
        """The timestamp of the page that waits longest, by when it came to wait. Canaries have none to tell."""
        longest = [
            next((each.document.timestamp for each in waiting if not each.document.is_canary), None)
            for waiting in (self._batches_of, self._asked)
        ]
        return min((timestamp for timestamp in longest if timestamp is not None), default=None)

    def add(self, batch: BatchId, expected: Sequence[int], waiting: DocumentKey) -> None:
        """A document waits for these shard partitions to answer for this batch; unless it already asks for evidence."""
        if waiting in self._asked:
            return
        join = self._joins.get(batch)
        if join is None:
            join = self._joins[batch] = _Join(set(expected))
        join.waiting.add(waiting)
        self._batches_of.setdefault(waiting, set()).add(batch)
        self._waiting_with.setdefault(waiting.fingerprint, set()).add(waiting)
        self._changed.add(batch)

    def answered(self, answers: Answers, table: int) -> list[tuple[DocumentKey, dict[int, int]]]:
        """Note what a shard said; return the documents whose batch is now complete, with all that was found near each.

        They no longer wait for answers.
        """
        pairs = zip(answers.query.tolist(), answers.found.tolist(), strict=True)
        self._near.note(pairs, 1 << table, self._waiting_with)
        complete: list[tuple[DocumentKey, dict[int, int]]] = []
        for batch in answers.batches:
            join = self._joins.get(batch)
            if join is None:
                continue
            join.missing.discard(answers.partition)
            self._changed.add(batch)
            if not join.missing:
                # In the order of all pages, so that what follows does not depend on how a set happens to be laid out.
                ready = sorted(join.waiting, key=lambda each: each.document)
                complete += [(each, self._near.of(each.fingerprint)) for each in ready]
                for each in ready:
                    self.leave(each)
        self._near.trim()
        return complete

    def ask(self, waiting: DocumentKey, candidates: Iterable[int]) -> None:
        """From now on the document waits for evidence about these fingerprints."""
        self._asked[waiting] = set(candidates)
        self._changed.add(waiting)

    def heard(self, waiting: DocumentKey, candidates: Iterable[int]) -> bool:
        """Evidence about some candidates has come; whether it was the last that was missing."""
        asked = self._asked.get(waiting)
        if asked is None:
            return False
        asked.difference_update(candidates)
        self._changed.add(waiting)
        if asked:
            return False
        del self._asked[waiting]
        return True

    def leave(self, waiting: DocumentKey) -> None:
        """The document is settled, or goes on to ask: it waits in no batch any more."""
        for batch in self._batches_of.pop(waiting, ()):
            join = self._joins[batch]
            join.waiting.discard(waiting)
            self._changed.add(batch)
            if not join.waiting:
                del self._joins[batch]
        together = self._waiting_with.get(waiting.fingerprint)
        if together is not None:
            together.discard(waiting)
            if not together:
                del self._waiting_with[waiting.fingerprint]
                self._near.drop(waiting.fingerprint)
        if self._asked.pop(waiting, None) is not None:
            self._changed.add(waiting)

    def flush(self) -> None:
        """Write what changed into the store, to be saved with it."""
        self._near.flush()
        for changed in self._changed:
            value: Any
            match changed:
                case BatchId():
                    key, join = b"J" + _BATCH.pack(*changed), self._joins.get(changed)
                    value = None if join is None else [sorted(join.missing), [_flat(each) for each in join.waiting]]
                case DocumentKey():
                    key = b"Q" + _PLACE.pack(*_flat(changed))
                    value = sorted(self._asked[changed]) if changed in self._asked else None
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
            for row in rows:
                self.add(batch, missing, _waiting(row))
        for key, packed in self._store.scan(b"Q"):
            waiting = _waiting(_PLACE.unpack(key[1:]))
            self._asked[waiting] = set(msgpack.unpackb(packed))
            self._stored.add(waiting)
        self._changed.clear()


def _flat(waiting: DocumentKey) -> tuple[int, ...]:
    return (waiting.fingerprint, *waiting.document)


def _waiting(row: Sequence[int]) -> DocumentKey:
    return DocumentKey(row[0], DocumentId(*row[1:]))

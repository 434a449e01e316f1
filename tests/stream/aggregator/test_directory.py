"""Tests of the directory against a plain dict, with saving, crashes and a small cache at any point."""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from neardup.matching.found_by import found_by_table
from neardup.matching.match import Match
from neardup.stream.aggregator.directory import ENTRY_BYTES, KNOWN_BYTES, Directory, KnownDocument, url_hash
from neardup.stream.aggregator.store import Store
from neardup.types import Document, DocumentId, Kind, Relation
from tests.support.documents import document, matches, plain

FINGERPRINTS = [0, 1, 2**63, 2**64 - 1, 77]
URLS = ["a", "b", "c"]
ROW = tuple[Any, ...]

offsets = st.integers(0, 6)


def made(offset: int) -> Document:
    """Return document number `offset`. The number determines its fingerprint, URL and bytes."""
    return document(
        offset, offset % 3, fingerprint=FINGERPRINTS[offset % 5], url=URLS[offset % 3], content=f"{offset % 2}"
    )


def row_of(known: KnownDocument) -> ROW:
    return plain(known.document), known.kind, known.revision, known.match


@contextmanager
def opened(path: Path) -> Iterator[tuple[Store, Directory]]:
    with closing(Store(path, "p")) as store:
        yield store, Directory(store)


@dataclass
class Model:
    """The expected content of the directory."""

    variants: dict[int, dict[DocumentId, ROW]] = field(default_factory=dict)
    markers: set[tuple[int, DocumentId]] = field(default_factory=set)
    firsts: dict[bytes, tuple[DocumentId, str]] = field(default_factory=dict)
    urls: set[tuple[str, int, DocumentId]] = field(default_factory=set)

    def of(self, fingerprint: int) -> dict[DocumentId, ROW]:
        return self.variants.setdefault(fingerprint, {})


class DirectoryMachine(RuleBasedStateMachine):
    """A state machine whose rules do the same to the directory and to the model."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("neardup.stream.aggregator.directory.CACHED_BYTES", 4000)  # enough for two documents
        self.temporary = tempfile.TemporaryDirectory()
        self.model, self.saved = Model(), Model()
        self.open()

    def open(self) -> None:
        self.store = Store(Path(self.temporary.name), "p")
        self.directory = Directory(self.store)

    def teardown(self) -> None:
        for each in map(made, range(7)):
            self.assert_equal(each.fingerprint, each)
        self.store.close()
        self.temporary.cleanup()
        self.patch.undo()

    def assert_equal(self, fingerprint: int, each: Document) -> None:
        variants = {known.document.id: row_of(known) for known in self.directory.variants(fingerprint)}
        assert variants == self.model.of(fingerprint)
        assert self.directory.has_marker(fingerprint, each.id) == ((fingerprint, each.id) in self.model.markers)
        content = each.checksums.content
        assert self.directory.first_copy_with(content) == self.model.firsts.get(content)
        listed = list(self.directory.documents_of_url(each.url))
        assert sorted(listed) == sorted((fp, id_) for url, fp, id_ in self.model.urls if url == each.url)

    @rule(offset=offsets)
    def look(self, offset: int) -> None:
        each = made(offset)
        self.assert_equal(each.fingerprint, each)
        known = self.directory.find(each.fingerprint, each.id)
        assert (None if known is None else row_of(known)) == self.model.of(each.fingerprint).get(each.id)

    @rule(offset=offsets, match=st.none() | matches)
    def add(self, offset: int, match: Match | None) -> None:
        each = made(offset)
        if each.id in self.model.of(each.fingerprint):
            return
        known = KnownDocument(each, match=match)
        self.directory.add(known)
        self.model.of(each.fingerprint)[each.id] = row_of(known)
        self.model.urls.add((each.url, each.fingerprint, each.id))

    @rule(offset=offsets, kind=st.sampled_from([Kind.UNIQUE, Kind.DUPLICATE]), match=st.none() | matches)
    def change(self, offset: int, kind: Kind, match: Match | None) -> None:
        each = made(offset)
        known = self.directory.find(each.fingerprint, each.id)
        if known is not None:
            known.kind, known.match, known.revision = kind, match, known.revision + 1
            self.directory.mark_changed(each.fingerprint)
            self.model.of(each.fingerprint)[each.id] = row_of(known)

    @rule(offset=offsets)
    def demote(self, offset: int) -> None:
        each = made(offset)
        known = self.directory.find(each.fingerprint, each.id)
        if known is not None:
            self.directory.reduce_to_marker(known)
            del self.model.of(each.fingerprint)[each.id]
            self.model.markers.add((each.fingerprint, each.id))

    @rule(offset=offsets)
    def add_copy(self, offset: int) -> None:
        each = made(offset)
        self.directory.add_copy(each)
        self.directory.set_first_copy(each)
        self.model.markers.add((each.fingerprint, each.id))
        self.model.firsts[each.checksums.content] = (each.id, each.url)
        self.model.urls.add((each.url, each.fingerprint, each.id))

    @rule(offset=offsets)
    def forget(self, offset: int) -> None:
        each = made(offset)
        self.directory.forget(each.fingerprint, each.id, url_hash(each.url))
        self.model.of(each.fingerprint).pop(each.id, None)
        self.model.markers.add((each.fingerprint, each.id))
        self.model.urls.discard((each.url, each.fingerprint, each.id))

    @rule(before=offsets)
    def forget_first_copies(self, before: int) -> None:
        self.directory.forget_first_copies(lambda each: each.timestamp < before)
        kept = {content: first for content, first in self.model.firsts.items() if first[0].timestamp >= before}
        self.model.firsts = kept

    @rule(before=offsets)
    def list_old(self, before: int) -> None:
        listed = list(self.directory.older_than(before))
        expected = [((fp, each), url_hash(url)) for url, fp, each in self.model.urls if each.timestamp < before]
        assert sorted(listed) == sorted(expected)

    @rule()
    def evict(self) -> None:
        self.directory.evict()

    @rule()
    def flush_settled(self) -> None:
        self.directory.flush_settled()

    @rule()
    def flush(self) -> None:
        self.directory.flush()
        assert self.directory.cached_bytes <= 4000

    @rule(reopened=st.booleans())
    def save(self, reopened: bool) -> None:
        self.directory.flush()
        self.store.save(1)
        self.saved = deepcopy(self.model)
        if reopened:
            self.crash()

    @rule()
    def crash(self) -> None:
        self.store.close()
        self.model = deepcopy(self.saved)
        self.open()


TestDirectory = DirectoryMachine.TestCase
TestDirectory.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


def test_a_document_is_read_back_with_all_its_fields(tmp_path: Path) -> None:
    each = document(3, 1, fingerprint=2**64 - 1, url="ü", note="cut")
    match = Match(
        id=DocumentId(1, 0, 1),
        url="v",
        relation=Relation.NEAR,
        hamming=2,
        resemblance=0.75,
        containment=None,
        found_by=found_by_table(70),
        group=DocumentId(1, 0, 1),
        group_url="v",
    )
    with opened(tmp_path) as (store, directory):
        directory.add(KnownDocument(each, Kind.DUPLICATE, 1, match))
        directory.flush()
        store.save(1)
    with opened(tmp_path) as (_, directory):
        known = directory.find(each.fingerprint, each.id)
        assert known is not None
        assert row_of(known) == (plain(each), Kind.DUPLICATE, 1, match)


def test_a_fingerprint_that_lost_its_last_variant_has_none_after_reopening(tmp_path: Path) -> None:
    each = document(3, 1)
    with opened(tmp_path) as (store, directory):
        directory.add(KnownDocument(each))
        directory.flush()
        store.save(1)
        directory.reduce_to_marker(directory.variants(0)[0])
        directory.flush()
        store.save(2)
    with opened(tmp_path) as (_, directory):
        assert directory.variants(0) == []
        assert directory.has_marker(0, each.id)


def test_settled_documents_are_packed_before_the_checkpoint_and_pending_ones_with_it(tmp_path: Path) -> None:
    settled, waits = document(1, 1, fingerprint=1), document(2, 1, fingerprint=2)
    with opened(tmp_path) as (store, directory):
        directory.add(KnownDocument(settled, Kind.UNIQUE))
        directory.add(KnownDocument(waits))
        directory.flush_settled()
        assert [key[-1] for key, _ in store.scan(b"F")] == [1]
        directory.flush()
        assert sorted(key[-1] for key, _ in store.scan(b"F")) == [1, 2]


def test_the_documents_of_a_url_are_found_whatever_their_state(tmp_path: Path) -> None:
    variant, copy, other = document(1, 1, url="u"), document(2, 1, url="u"), document(3, 1, url="v")
    with opened(tmp_path) as (_, directory):
        directory.add(KnownDocument(variant))
        directory.add_copy(copy)
        directory.add(KnownDocument(other))
        known = directory.find(0, variant.id)
        assert known is not None
        directory.reduce_to_marker(known)
        assert sorted(directory.documents_of_url("u")) == [(0, variant.id), (0, copy.id)]


@pytest.mark.parametrize(("count", "stay"), [(1, 1), (3, 3), (4, 4), (5, 5), (7, 5)])
def test_only_the_oldest_entries_beyond_the_limit_are_evicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, stay: int
) -> None:
    known = [KnownDocument(document(offset, 1, fingerprint=offset)) for offset in range(count)]
    each_takes = ENTRY_BYTES + KNOWN_BYTES + known[0].document.sketch.nbytes + len(known[0].document.url)
    monkeypatch.setattr("neardup.stream.aggregator.directory.CACHED_BYTES", 5 * each_takes)
    with opened(tmp_path) as (_, directory):
        for each in known:
            directory.add(each)
        assert directory.cached_bytes == count * each_takes
        directory.flush()
        assert directory.cached_bytes == stay * each_takes
        in_memory = [directory.variants(offset)[0] is each for offset, each in enumerate(known)]
    assert in_memory == [False] * (count - stay) + [True] * stay


def test_between_checkpoints_unchanged_entries_are_evicted_and_changed_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [KnownDocument(document(offset, 1, fingerprint=offset)) for offset in range(20)]
    with opened(tmp_path) as (store, directory):
        for each in known:
            directory.add(each)
        directory.flush()
        store.save(1)
    monkeypatch.setattr("neardup.stream.aggregator.directory.CACHED_BYTES", 8000)
    with opened(tmp_path) as (_, directory):
        changed = directory.variants(0)[0]
        changed.kind = Kind.UNIQUE
        directory.mark_changed(0)
        for offset in range(20):
            directory.variants(offset)
            directory.evict()
            assert directory.cached_bytes <= 8000 * 9 // 8 + 2000
        assert directory.variants(0)[0] is changed


def test_the_document_count_survives_restarts_and_is_rebuilt_if_missing(tmp_path: Path) -> None:
    variant, copy, other = document(1, 1, url="u"), document(2, 1, url="u"), document(3, 1, url="v")
    with opened(tmp_path) as (store, directory):
        directory.add(KnownDocument(variant))
        directory.add_copy(copy)
        directory.add(KnownDocument(other))
        directory.reduce_to_marker(directory.variants(0)[0])
        directory.forget(0, other.id, url_hash("v"))
        directory.forget(0, other.id, url_hash("v"))
        assert directory.documents == 2
        directory.flush()
        store.save(1)
    with opened(tmp_path) as (store, directory):
        assert directory.documents == 2
        store.delete(b"T")
        assert Directory(store).documents == 2


@pytest.mark.parametrize("saved", [False, True])
def test_a_repeated_seed_does_not_overwrite_later_changes(tmp_path: Path, saved: bool) -> None:
    with opened(tmp_path / "old") as (_, old):
        old.add(KnownDocument(made(0)))
        old.flush()
        seeds = [entry for _, entry in old.entries()]
    with opened(tmp_path / "new") as (_, new):
        new.restore(seeds)
        [known] = new.variants(made(0).fingerprint)
        known.kind = Kind.UNIQUE
        new.mark_changed(made(0).fingerprint)
        if saved:
            new.flush()
        new.restore(seeds)
        new.flush()
        assert [each.kind for each in new.variants(made(0).fingerprint)] == [Kind.UNIQUE]
        assert new.documents == 1

"""Tests of the featurizer: registrations and probes, their recipients and their order."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from neardup.deployment.plan import plan_of
from neardup.errors import InvalidPage
from neardup.index.plan.routing import Routing, owner_of
from neardup.index.psm.flip_model import FlipModel, simulated_model
from neardup.log import PlainRecord, Record
from neardup.messages import wire
from neardup.messages.pages import document_id, read_page
from neardup.messages.probes import Probes, read_probes, write_probes
from neardup.messages.registrations import Registrations, read_registrations, read_skipped
from neardup.messages.topics import Topics
from neardup.runtime.stage import Waves
from neardup.settings import Settings
from neardup.signatures.packed_sketch import pack_sketch
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.stream.featurizer import stage as featurizer
from neardup.stream.featurizer.page_pool import FeaturizedBatch, PagePool
from neardup.stream.featurizer.stage import Featurizer
from neardup.types import BatchId, Document, SkippedPage
from tests.support.documents import body_of, outputs_to, page, plain, text_of
from tests.support.messages import VERSIONS

OWNERS = 3
SETTINGS = Settings(prefix="t", owners=OWNERS, tables=4, slice_bits=1, bands="3x4", band_slice_bits=1)
PROBABILISTIC = Settings(prefix="t", owners=OWNERS, search="probabilistic", bands="none")
TOPICS = Topics.under("t")
BATCH = BatchId(0, 0, 4999)
PAGES = [page(offset, text_of(offset)) for offset in range(12)]
SHORT = page(50, ["one", "two"])
BAD = page(51, b'{"url": 7}')


class InSmallChunks(PagePool):
    """A pool that splits each batch into chunks of seven records, as a pool with processes splits larger ones."""

    def featurize(self, records: Sequence[Record], batch_size: int) -> Iterator[FeaturizedBatch]:
        for batch, _ in super().featurize(records, batch_size):
            starts = range(0, len(batch), 7)
            yield FeaturizedBatch(batch, [self.featurize_chunk(batch[start : start + 7], start) for start in starts])


def made(settings: Settings = SETTINGS, model: FlipModel | None = None, kind: type[PagePool] = PagePool) -> Featurizer:
    pool = kind(Signatures(SignatureOptions.of(settings)), model)
    return Featurizer(batch_featurizer=pool, plan=plan_of(settings), topics=TOPICS, owners=OWNERS)


def registered(waves: Waves) -> list[tuple[int, Registrations]]:
    """Return (owner, registrations) in order."""
    partitions, m = plan_of(SETTINGS).partitions, SignatureOptions.of(SETTINGS).m
    got = []
    for output in outputs_to(waves, TOPICS.inbox):
        kind, body = wire.decode_any(output.value, VERSIONS)
        assert output.partition is not None
        if kind == "registrations":
            got.append((output.partition, read_registrations(body, partitions, m)))
    return got


def skipped(waves: Waves) -> list[SkippedPage]:
    messages = [wire.decode_any(output.value, VERSIONS) for output in outputs_to(waves, TOPICS.inbox)]
    return [each for kind, body in messages if kind == "skipped" for each in read_skipped(body).pages]


def probed(waves: Waves, settings: Settings = SETTINGS) -> dict[int, Probes]:
    """Return the probes by shard partition; there must be one message per partition."""
    outputs = outputs_to(waves, TOPICS.probes)
    probes = {int(output.partition or 0): read_probes(body_of(output.value, "probes")) for output in outputs}
    assert len(probes) == len(outputs)
    return probes


def documents(waves: Waves) -> list[Document]:
    return [each for _, registrations in registered(waves) for each in registrations.documents]


def by_id(some: Sequence[Document]) -> list[tuple[Any, ...]]:
    return sorted((plain(each) for each in some), key=lambda values: values[0])


# Registrations


def test_registrations_are_the_first_wave_and_probes_the_second() -> None:
    first, second = made().process([*PAGES, SHORT]).waves
    assert {output.topic for output in first} == {TOPICS.inbox}
    assert {output.topic for output in second} == {TOPICS.probes}
    assert first
    assert second


def test_every_document_is_registered_once_with_the_owner_of_its_fingerprint() -> None:
    waves = made().process(PAGES)
    assert sorted(each.id for each in documents(waves)) == [document_id(record) for record in PAGES]
    assert {owner for owner, _ in registered(waves)} == set(range(OWNERS))
    for owner, registrations in registered(waves):
        assert registrations.batch == BatchId(0, 0, 11)
        for each in registrations.documents:
            assert owner_of(each.fingerprint, OWNERS) == owner


def test_a_document_has_the_signatures_of_its_page() -> None:
    signatures = Signatures(SignatureOptions.of(SETTINGS))
    made_of = {each.id: each for each in documents(made().process(PAGES))}
    for record in PAGES:
        expected = signatures.of(read_page(record))
        got = made_of[document_id(record)]
        assert expected.fingerprint is not None
        assert expected.sketches is not None
        assert (got.fingerprint, got.checksums) == (expected.fingerprint.value, expected.checksums)
        assert got.sketch.tolist() == pack_sketch(expected.sketches).tolist()
        assert (got.url, got.note, got.size) == (read_page(record).url, None, len(read_page(record).content))


def test_a_truncated_page_has_a_note() -> None:
    [cut] = documents(made(replace(SETTINGS, page_tokens=50)).process(PAGES[:1]))
    assert cut.note == "cut: tokens"


def test_the_expected_partitions_are_exactly_the_partitions_probed_for_an_owner() -> None:
    for some in (PAGES[:1], PAGES[1:4], PAGES[4:]):
        waves = made().process(some)
        probes = probed(waves)
        for owner, registrations in registered(waves):
            asked = {
                partition
                for partition, each in probes.items()
                if owner in {owner_of(fingerprint, OWNERS) for fingerprint in each.fingerprints.tolist()}
            }
            assert list(registrations.expected) == sorted(asked)
            assert registrations.batch == BatchId(0, some[0].offset, some[-1].offset)
            assert {each.batch for each in probes.values()} == {registrations.batch}


# Probes


def test_every_table_gets_one_probe_per_document_and_the_buckets_one_per_band() -> None:
    plan, routing = plan_of(SETTINGS), Routing(plan_of(SETTINGS))
    signatures = {}
    for record in PAGES:
        signature = Signatures(SignatureOptions.of(SETTINGS)).of(read_page(record))
        assert signature.fingerprint is not None
        assert signature.sketches is not None
        signatures[signature.fingerprint.value] = signature.sketches
    asked: dict[int, list[int]] = {}
    banded: list[tuple[int, int]] = []
    for partition, each in probed(made().process(PAGES)).items():
        place = routing.place_of(partition)
        if place.table is None:
            assert each.keys is not None
            banded += zip(each.fingerprints.tolist(), each.keys.tolist(), strict=True)
            assert set(routing.partitions_of_buckets(each.keys).tolist()) == {partition}
        else:
            asked.setdefault(place.table, []).extend(each.fingerprints.tolist())
            assert each.keys is None
            permuted = plan.tables[place.table].keys_of(each.fingerprints)
            assert set(routing.partitions_of_keys(place.table, permuted).tolist()) == {partition}
    assert sorted(banded) == sorted((each, key) for each, made in signatures.items() for key in made.bands.tolist())
    assert sorted(asked) == list(range(len(plan.tables)))
    assert all(sorted(some) == sorted(signatures) for some in asked.values())


def test_probes_of_the_probabilistic_search_contain_the_flip_levels_of_the_bits() -> None:
    settings, model = PROBABILISTIC, simulated_model()
    [probes] = probed(made(settings, model).process(PAGES), settings).values()
    assert probes.levels is not None
    for record, fingerprint, levels in zip(PAGES, probes.fingerprints.tolist(), probes.levels, strict=True):
        signature = Signatures(SignatureOptions.of(settings)).of(read_page(record))
        assert signature.fingerprint is not None
        weights = {bit: int(weight) for bit, weight in enumerate(signature.fingerprint.weights)}
        assert all((fingerprint >> bit & 1) == (weight > 0) for bit, weight in weights.items() if weight)
        from_the_first_bit = np.array([[weights[63 - place] for place in range(64)]], np.float64)
        assert levels.tolist() == model.levels_of(from_the_first_bit)[0].tolist()


# Pages that are not documents


def test_a_page_without_a_fingerprint_is_sent_to_an_owner_with_the_reason() -> None:
    waves = made().process([*PAGES, SHORT])
    assert skipped(waves) == [SkippedPage(document_id(SHORT), "http://example/50", None, "too short")]
    assert not waves.rejected


def test_a_batch_of_only_skipped_pages_sends_no_probes() -> None:
    waves = made().process([SHORT])
    assert len(skipped(waves)) == 1
    assert registered(waves) == []
    assert probed(waves) == {}


def test_invalid_pages_are_rejected_and_the_others_are_processed() -> None:
    stage = made()
    assert stage.open(Path("nowhere")) is None
    waves = stage.process([PAGES[0], PAGES[1], BAD, page(52, None)])
    assert [(rejection.record.offset, type(rejection.error)) for rejection in waves.rejected] == [
        (51, InvalidPage),
        (52, InvalidPage),
    ]
    assert len(documents(waves)) == 2
    assert stage.checkpoint() == 53


def test_a_page_over_a_limit_is_rejected_if_configured() -> None:
    settings = Settings(prefix="t", owners=OWNERS, page_tokens=50, over_limit="reject")
    waves = made(settings).process(PAGES[:1])
    assert [rejection.error.reason for rejection in waves.rejected] == ["over-limit"]


# Independence of chunks and batches


def mixed(count: int) -> list[PlainRecord]:
    """Return pages of which some are copies, too short, or invalid."""
    contents: list[Sequence[str] | bytes] = [text_of(number % 90) for number in range(count)]
    contents[3:100:20] = [["short"]] * len(contents[3:100:20])
    contents[7:100:30] = [b"{"] * len(contents[7:100:30])
    return [page(offset, content) for offset, content in enumerate(contents)]


@pytest.mark.parametrize("settings", [SETTINGS, PROBABILISTIC], ids=["exact", "probabilistic"])
@pytest.mark.parametrize("count", [1, 20, 110])
def test_the_number_of_chunks_does_not_change_the_bytes(count: int, settings: Settings) -> None:
    some, model = mixed(count), simulated_model() if settings is PROBABILISTIC else None
    expected, got = (made(settings, model, kind).process(some) for kind in (PagePool, InSmallChunks))
    assert got.waves == expected.waves
    assert [rejection.record for rejection in got.rejected] == [rejection.record for rejection in expected.rejected]


def test_more_pages_than_the_batch_size_become_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(featurizer, "_PROBE_BYTES", 5 * 72)
    stage = made()
    waves = stage.process([*PAGES, SHORT, BAD])
    cut = [BatchId(0, 0, 4), BatchId(0, 5, 9), BatchId(0, 10, 51)]
    assert {registrations.batch for _, registrations in registered(waves)} == set(cut)
    for _, registrations in registered(waves):
        for each in registrations.documents:
            assert registrations.batch.first <= each.id.offset <= registrations.batch.last
    asked = [read_probes(body_of(output.value, "probes")).batch for output in outputs_to(waves, TOPICS.probes)]
    assert list(dict.fromkeys(asked)) == cut
    assert by_id(documents(waves)) == by_id(documents(made().process(PAGES)))
    assert [rejection.record for rejection in waves.rejected] == [BAD]
    assert (len(skipped(waves)), stage.checkpoint()) == (1, 52)


@pytest.mark.parametrize("bands", ["none", "18x7", "128x1"])
def test_the_probes_of_a_whole_batch_are_far_below_a_megabyte(bands: str) -> None:
    plan = plan_of(replace(SETTINGS, bands=bands, band_slice_bits=0))
    count = made(replace(SETTINGS, bands=bands))._batch_size
    column, keys = np.zeros(count, np.uint64), np.zeros(count * plan.bands, np.uint64)
    for probes in (Probes(BATCH, keys, keys), Probes(BATCH, column, None, np.zeros((count, 64), np.uint8))):
        assert len(write_probes(probes, plan.digest)) < featurizer._PROBE_BYTES + 1000


@examples(max_examples=15)
@given(cuts=st.sets(st.integers(1, 39), max_size=6))
def test_registered_documents_do_not_depend_on_the_batches(cuts: set[int]) -> None:
    some = mixed(40)
    whole = made().process(some)
    stage = made()
    borders = [0, *sorted(cuts), 40]
    pieces = [stage.process(some[start:end]) for start, end in pairwise(borders)]
    got = [each for waves in pieces for each in documents(waves)]
    assert by_id(got) == by_id(documents(whole))
    both = [sorted(each.id for waves in many for each in skipped(waves)) for many in (pieces, [whole])]
    assert both[0] == both[1]
    assert sum(len(waves.rejected) for waves in pieces) == len(whole.rejected)
    assert stage.checkpoint() == 40

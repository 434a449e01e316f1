"""Tests of snapshots: they restore the saved state, and any other file is refused with what was expected and found."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import CorruptState, WrongState
from neardup.index.buckets.table import BucketTable
from neardup.index.plan.plan import Plan
from neardup.index.plan.table import Table
from neardup.index.slices.codecs import Codec
from neardup.index.slices.slice import Slice, SliceSettings
from neardup.index.snapshot import freeze_buckets, freeze_slice, load_buckets, load_slice
from tests.support.fingerprints import fingerprints, simulated, words
from tests.support.tables import compact

PLAN = Plan(signature_version="1")


def filled(codec: Codec = Codec.PLAIN) -> Slice:
    ours = Slice(Table.plain(20), settings=SliceSettings(codec=codec, tail=64, compress_from=500))
    ours.probe_and_insert(simulated(np.random.default_rng(1), 3000, 300), 3)
    return ours


@pytest.mark.parametrize("codec", Codec)
def test_a_slice_is_restored_unchanged(codec: Codec, tmp_path: Path) -> None:
    ours = filled(codec)
    freeze_slice(ours, plan=PLAN, partition=3, offset=77).write(tmp_path / "s")
    other = Slice(ours.table, settings=ours.settings)
    assert load_slice(tmp_path / "s", other, plan=PLAN, partition=3) == 77
    queries = simulated(np.random.default_rng(1), 500, 300)
    ours_found, other_found = ours.probe(queries, 3), other.probe(queries, 3)
    assert ours_found.query.tolist() == other_found.query.tolist()
    assert ours_found.key.tolist() == other_found.key.tolist()
    assert len(ours) == len(other)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("codec", Codec)
def test_keys_inserted_after_freezing_are_not_in_the_snapshot(codec: Codec, tmp_path: Path) -> None:
    ours = filled(codec)
    assert ours.tail.size
    frozen = freeze_slice(ours, plan=PLAN, partition=0, offset=1)
    frozen.write(tmp_path / "before")
    # Insert enough keys that every run is merged and its memory would be reused.
    ours.probe_and_insert(simulated(np.random.default_rng(2), 30_000, 300), 3)
    compact(ours)
    frozen.write(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_pairs_inserted_after_freezing_are_not_in_the_snapshot(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = BucketTable(recent=64)
    table.probe_and_insert(*rng.integers(0, 2**64, (2, 50_030), dtype=np.uint64))
    frozen = freeze_buckets(table, plan=PLAN, partition=0, offset=1)
    frozen.write(tmp_path / "before")
    for _ in range(20):
        table.probe_and_insert(*rng.integers(0, 2**64, (2, 20_000), dtype=np.uint64))
    frozen.write(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_another_plan_partition_or_signature_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    freeze_slice(filled(), plan=PLAN, partition=3, offset=1).write(path)
    into = Slice(Table.plain(20))
    with pytest.raises(WrongState, match=r"expected a plan with k = 2, got k = 3"):
        load_slice(path, into, plan=replace(PLAN, k=2), partition=3)
    with pytest.raises(WrongState, match=r"signature_version = '2', got signature_version = '1'"):
        load_slice(path, into, plan=replace(PLAN, signature_version="2"), partition=3)
    with pytest.raises(WrongState, match="expected slice of partition 4, got slice of partition 3"):
        load_slice(path, into, plan=PLAN, partition=4)
    with pytest.raises(WrongState, match="expected buckets"):
        load_buckets(path, BucketTable(), plan=PLAN, partition=3)


def test_invalid_magic_and_version(tmp_path: Path) -> None:
    path = tmp_path / "s"
    freeze_slice(filled(), plan=PLAN, partition=0, offset=1).write(path)
    raw = path.read_bytes()
    path.write_bytes(b"SOMETHIN" + raw[8:])
    with pytest.raises(WrongState, match="begins with"):
        load_slice(path, filled(), plan=PLAN, partition=0)
    path.write_bytes(raw[:8] + b"\x09" + raw[9:])
    with pytest.raises(WrongState, match="expected version 3, got 9"):
        load_slice(path, filled(), plan=PLAN, partition=0)


@given(data=st.data())
def test_truncated_or_altered_files_are_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("torn") / "s"
    ours = Slice(Table.plain(20), settings=SliceSettings(tail=8))
    ours.probe_and_insert(words(data.draw(fingerprints(40))), 3)
    compact(ours)  # so that the keys start at byte 4096
    freeze_slice(ours, plan=PLAN, partition=0, offset=1).write(path)
    raw = path.read_bytes()
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw) - 1))])
    with pytest.raises((CorruptState, WrongState)):
        load_slice(path, ours, plan=PLAN, partition=0)
    at = data.draw(st.one_of(st.integers(0, 400), st.integers(4096, 4103)))
    path.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << data.draw(st.integers(0, 7))]) + raw[at + 1 :])
    with pytest.raises((CorruptState, WrongState)):
        load_slice(path, ours, plan=PLAN, partition=0)


def test_a_crash_while_saving_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    freeze_slice(filled(), plan=PLAN, partition=0, offset=5).write(path)

    def crash(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("os.fsync", crash)
    with pytest.raises(OSError, match="no space"):
        freeze_slice(filled(), plan=PLAN, partition=0, offset=9).write(path)
    assert load_slice(path, filled(), plan=PLAN, partition=0) == 5


def test_buckets_are_restored(tmp_path: Path) -> None:
    table = BucketTable()
    table.probe_and_insert(words([7, 7, 8]), words([1, 2, 3]))
    freeze_buckets(table, plan=PLAN, partition=1, offset=2).write(tmp_path / "b")
    other = BucketTable()
    assert load_buckets(tmp_path / "b", other, plan=PLAN, partition=1) == 2
    assert other.probe_and_insert(words([7]), words([9])).fingerprint.tolist() == [1, 2]

"""Tests of seeds: round trips, and rejection of invalid ones."""

from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from neardup.deployment.plan import plan_of
from neardup.errors import Corrupt, Retired, WrongPlan, WrongVersion
from neardup.log import PlainRecord
from neardup.messages.formats import MessageContext
from neardup.messages.registry import PROBES_TOPIC
from neardup.messages.seeds import (
    Entry,
    SeedEntries,
    SeedKeys,
    read_seed_entries,
    read_seed_keys,
    stop_at_retired,
    write_retired,
    write_seed_entries,
    write_seed_keys,
)
from neardup.settings import Settings
from neardup.stream.aggregator.directory import check_seed
from neardup.stream.shard.stage import Shard
from tests.support.messages import decode

WORDS = np.array([3, 2**64 - 1], np.uint64)
PLAN = "plan"
CONTEXT = MessageContext(plan="other", generation=0, partitions=1, owners=1, mips=128)


@pytest.mark.parametrize("keys", [None, WORDS[::-1]])
def test_keys_are_read_back(keys: np.ndarray[Any, np.dtype[np.uint64]] | None) -> None:
    found = read_seed_keys(decode(write_seed_keys(SeedKeys(7, WORDS, keys), PLAN), "seed-keys"))
    assert (found.timestamp, found.fingerprints.tolist()) == (7, WORDS.tolist())
    assert found.keys is None if keys is None else found.keys is not None and found.keys.tolist() == keys.tolist()


@pytest.mark.parametrize(
    "change", [{"timestamp": -1}, {"timestamp": "7"}, {"fingerprint": [1]}, {"key": WORDS[:1]}, {"key": b"12345678"}]
)
def test_invalid_keys_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Corrupt):
        read_seed_keys({"plan": PLAN, "timestamp": 7, "fingerprint": WORDS} | change)


def test_keys_of_another_plan_are_refused() -> None:
    with pytest.raises(WrongPlan, match="expected a message made with plan other, got 'plan'"):
        PROBES_TOPIC.read(write_seed_keys(SeedKeys(7, WORDS), PLAN), CONTEXT)


def test_entries_are_read_back_in_messages_of_bounded_size() -> None:
    entries = [Entry(b"D%d" % number, bytes(1000)) for number in range(2000)]
    messages = list(write_seed_entries(entries, 2, PLAN))
    assert 4 <= len(messages) <= 6
    found = [read_seed_entries(decode(each, "seed-entries")).entries for each in messages]
    assert [entry for some in found for entry in some] == entries


def test_entries_of_another_layout_are_refused() -> None:
    (message,) = write_seed_entries([Entry(b"D", b"")], 1, PLAN)
    with pytest.raises(WrongVersion, match="expected directory entries of layout 2, got 1"):
        check_seed(read_seed_entries(decode(message, "seed-entries")), 128)


@pytest.mark.parametrize(
    "entry",
    [
        Entry(b"", b""),
        Entry(b"\x00offset", bytes(8)),
        Entry(b"T", bytes(8)),
        Entry(b"F" + bytes(7), msgpack.packb([])),
        Entry(b"F" + bytes(8), b"\xc1"),
        Entry(b"F" + bytes(8), msgpack.packb(7)),
        Entry(b"F" + bytes(8), msgpack.packb([[1, 2]])),
        Entry(b"F" + bytes(8), msgpack.packb([[[1, 0, 0], "u", None, b"c", b"t", b"s", 1, b"x", None, 1, 0, None]])),
        Entry(b"D" + bytes(32), b"x"),
        Entry(b"U" + bytes(10), b""),
        Entry(b"C" + bytes(8), msgpack.packb([[1, 2], "u"])),
        Entry(b"J" + bytes(24), msgpack.packb([[], []])),
    ],
)
def test_an_invalid_entry_is_refused(entry: Entry) -> None:
    with pytest.raises(Corrupt):
        check_seed(SeedEntries(2, [entry]), 128)


def test_the_end_of_a_log_stops_its_reader() -> None:
    with pytest.raises(Retired, match="NEARDUP_GENERATION=3"):
        stop_at_retired(decode(write_retired(3), "retired"), 2)


@pytest.mark.parametrize("generation", ["next", None, -1, 2**63, 2, 4, np.arange(3)])
def test_an_end_with_another_next_generation_is_refused(generation: object) -> None:
    with pytest.raises(Corrupt, match="expected generation 3 as the next one"):
        stop_at_retired({"generation": generation}, 2)


def test_seeds_for_another_kind_of_table_go_to_dead_letters(tmp_path: Path) -> None:
    settings = Settings(tables=4, bands="3x4")
    plan = plan_of(settings)
    for partition, keys in ((0, WORDS), (4, None)):
        shard = Shard(settings=settings, plan=plan, partition=partition)
        shard.open(tmp_path / str(partition))
        value = write_seed_keys(SeedKeys(7, WORDS, keys), plan.digest)
        waves = shard.process([PlainRecord("t.probes", partition, 0, 0, None, value, ())])
        assert [type(each.error) for each in waves.rejected] == [Corrupt]
        assert len(shard) == 0
        shard.close()

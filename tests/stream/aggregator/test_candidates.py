"""Candidates of pending documents: beyond the memory limit they spill to the store, and none is lost."""

from contextlib import closing
from pathlib import Path

import pytest

from neardup.matching.found_by import found_by_table
from neardup.stream.aggregator.candidates import CandidateStore
from neardup.stream.aggregator.store import Store


@pytest.fixture(autouse=True)
def room_for_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.stream.aggregator.candidates.IN_MEMORY", 10)


def test_a_flood_stays_out_of_memory_and_is_all_there(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        candidates = CandidateStore(store)
        for table in range(70):
            for waiting in range(30):
                candidates.add(
                    [(waiting, found) for found in range(waiting, waiting + 4)], found_by_table(table), range(30)
                )
                candidates.spill()
                assert candidates.in_memory <= 10
        every_table = (1 << 70) - 1
        for waiting in range(30):
            assert candidates.get(waiting) == dict.fromkeys(range(waiting, waiting + 4), every_table)


def test_what_is_saved_is_there_after_a_restart_and_what_is_dropped_is_not(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        candidates = CandidateStore(store)
        for waiting in range(5):
            candidates.add([(waiting, 7), (waiting, 8), (waiting, 9)], found_by_table(0), range(5))
        candidates.spill()
        candidates.remove(0)
        candidates.remove(4)
        candidates.flush()
        store.save(1)
        assert sum(1 for _ in store.scan(b"N")) == 3
    with closing(Store(tmp_path, "p")) as store:
        candidates = CandidateStore(store)
        assert candidates.in_memory == 0, "expected to be read when it is needed"
        assert [bool(candidates.get(waiting)) for waiting in range(5)] == [False, True, True, True, False]
        assert candidates.get(2) == {7: 1, 8: 1, 9: 1}


def test_a_page_that_is_soon_settled_leaves_nothing_to_be_deleted(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        candidates = CandidateStore(store)
        candidates.add([(1, 2), (3, 4)], found_by_table(0), [1])
        candidates.remove(1)
        candidates.flush()
        assert not store._changes

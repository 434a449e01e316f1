"""Tests of candidates of pending documents: beyond the memory limit they spill to the store, and none is lost."""

from contextlib import closing
from pathlib import Path

import pytest

from neardup.matching.found_by import found_by_table
from neardup.stream.aggregator.candidates import CandidateStore
from neardup.stream.aggregator.store import Store


@pytest.fixture(autouse=True)
def room_for_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.stream.aggregator.candidates.IN_MEMORY", 10)


def test_candidates_beyond_the_limit_spill_to_the_store_and_none_is_lost(tmp_path: Path) -> None:
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


def test_saved_candidates_survive_a_restart_and_dropped_ones_do_not(tmp_path: Path) -> None:
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
        assert candidates.in_memory == 0, "expected the candidates to be read from the store on demand"
        assert [bool(candidates.get(waiting)) for waiting in range(5)] == [False, True, True, True, False]
        assert candidates.get(2) == {7: 1, 8: 1, 9: 1}


def test_a_page_that_settles_before_the_checkpoint_causes_no_deletion(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        candidates = CandidateStore(store)
        candidates.add([(1, 2), (3, 4)], found_by_table(0), [1])
        candidates.remove(1)
        candidates.flush()
        assert not store._changes

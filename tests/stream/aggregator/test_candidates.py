"""What was found near who waits: beyond what memory is meant for it stands in the store, and nothing is lost."""

from contextlib import closing
from pathlib import Path

import pytest

from neardup.stream.aggregator.candidates import CandidateStore
from neardup.stream.aggregator.store import Store


@pytest.fixture(autouse=True)
def room_for_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.stream.aggregator.candidates.IN_MEMORY", 10)


def test_a_flood_stays_out_of_memory_and_is_all_there(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        near = CandidateStore(store)
        for table in range(70):
            for waiting in range(30):
                near.note([(waiting, found) for found in range(waiting, waiting + 4)], 1 << table, range(30))
                near.trim()
                assert near.in_memory <= 10
        every_table = (1 << 70) - 1
        for waiting in range(30):
            assert near.of(waiting) == dict.fromkeys(range(waiting, waiting + 4), every_table)


def test_what_is_saved_is_there_after_a_restart_and_what_is_dropped_is_not(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        near = CandidateStore(store)
        for waiting in range(5):
            near.note([(waiting, 7), (waiting, 8), (waiting, 9)], 1, range(5))
        near.trim()
        near.drop(0)
        near.drop(4)
        near.flush()
        store.save(1)
        assert sum(1 for _ in store.scan(b"N")) == 3
    with closing(Store(tmp_path, "p")) as store:
        near = CandidateStore(store)
        assert near.in_memory == 0, "expected to be read when it is needed"
        assert [bool(near.of(waiting)) for waiting in range(5)] == [False, True, True, True, False]
        assert near.of(2) == {7: 1, 8: 1, 9: 1}


def test_a_page_that_is_soon_settled_leaves_nothing_to_be_deleted(tmp_path: Path) -> None:
    with closing(Store(tmp_path, "p")) as store:
        near = CandidateStore(store)
        near.note([(1, 2), (3, 4)], 1, [1])
        near.drop(1)
        near.flush()
        assert not store._changes

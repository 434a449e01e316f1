import random
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import CorruptState, StateInUse, WrongState
from neardup.stream.aggregator.store import VERSION, Store

PARTITION = "neardup.inbox-3"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Create a state directory with a value and offset 7."""
    with closing(Store(tmp_path, PARTITION)) as store:
        store.put(b"key", b"value" * 100)
        store.save(7)
    return tmp_path


def overwrite(path: Path, content: bytes = b"\xa5" * 64) -> None:
    """Overwrite the first bytes of a file without changing its length."""
    data = path.read_bytes()
    assert data
    path.write_bytes((content + data[len(content) :])[: len(data)])


def test_a_new_directory_is_empty_and_has_no_offset(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "deep" / "down", PARTITION)) as store:
        assert store.offset == 0
        assert store.get(b"key") is None


def test_a_change_is_visible_before_it_is_saved(tmp_path: Path) -> None:
    with closing(Store(tmp_path, PARTITION)) as store:
        store.put(b"key", b"1")
        assert store.get(b"key") == b"1"
        store.save(1)
        store.put(b"key", b"2")
        assert store.get(b"key") == b"2"


def test_saved_changes_and_the_offset_survive_reopening(saved: Path) -> None:
    with closing(Store(saved, PARTITION)) as store:
        assert store.get(b"key") == b"value" * 100
        assert store.offset == 7


def test_unsaved_changes_are_lost_on_close(saved: Path) -> None:
    with closing(Store(saved, PARTITION)) as store:
        store.put(b"key", b"other")
        store.put(b"more", b"x")
    with closing(Store(saved, PARTITION)) as store:
        assert store.get(b"key") == b"value" * 100
        assert store.get(b"more") is None
        assert store.offset == 7


def test_the_offset_moves_only_with_a_save(tmp_path: Path) -> None:
    with closing(Store(tmp_path, PARTITION)) as store:
        store.put(b"key", b"1")
        assert store.offset == 0
        store.save(5)
        assert store.offset == 5


def test_an_offset_can_be_saved_without_changes(saved: Path) -> None:
    with closing(Store(saved, PARTITION)) as store:
        store.save(2**40)
    with closing(Store(saved, PARTITION)) as store:
        assert store.offset == 2**40
        assert store.get(b"key") == b"value" * 100


def test_a_killed_worker_leaves_the_data_and_offset_of_its_last_save(tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    with closing(Store(original, PARTITION)) as store:
        for offset in range(1, 4):
            store.put(b"key", str(offset).encode())
            store.save(offset)
        store.put(b"key", b"unsaved")
        # A kill would leave the files as they are now; only this process holds the LOCK file.
        (copy / "store").mkdir(parents=True)
        for path in (original / "store").iterdir():
            if path.name != "LOCK":
                (copy / "store" / path.name).write_bytes(path.read_bytes())
    with closing(Store(copy, PARTITION)) as store:
        assert store.offset == 3
        assert store.get(b"key") == b"3"


def test_a_deleted_value_is_gone_before_and_after_saving(saved: Path) -> None:
    with closing(Store(saved, PARTITION)) as store:
        store.delete(b"key")
        store.delete(b"never there")
        assert store.get(b"key") is None
        store.save(8)
        assert store.get(b"key") is None
    with closing(Store(saved, PARTITION)) as store:
        assert store.get(b"key") is None
        assert list(store.scan(b"k")) == []


def test_an_unsaved_deletion_is_lost_on_close(saved: Path) -> None:
    with closing(Store(saved, PARTITION)) as store:
        store.delete(b"key")
    with closing(Store(saved, PARTITION)) as store:
        assert store.get(b"key") == b"value" * 100


def test_a_scan_includes_unsaved_changes_and_excludes_other_prefixes(tmp_path: Path) -> None:
    with closing(Store(tmp_path, PARTITION)) as store:
        for key in (b"a", b"b1", b"b2", b"b3", b"c"):
            store.put(key, b"old")
        store.save(1)
        store.put(b"b2", b"new")
        store.delete(b"b3")
        store.put(b"b4", b"new")
        store.put(b"c2", b"new")
        assert dict(store.scan(b"b")) == {b"b1": b"old", b"b2": b"new", b"b4": b"new"}
        assert len(list(store.scan(b"b"))) == 3


keys = st.sampled_from([b"a", b"aa", b"ab", b"b", b"ba", b"b\xff", b"b\xff\xff", b"c"])
changes = st.dictionaries(keys, st.none() | st.binary(max_size=4))


@settings(max_examples=40)
@given(saves=st.lists(changes, max_size=5), unsaved=changes, prefix=st.sampled_from([b"a", b"b", b"b\xff", b"z"]))
def test_it_behaves_like_a_dict_that_loses_unsaved_changes(
    tmp_path_factory: pytest.TempPathFactory,
    saves: list[dict[bytes, bytes | None]],
    unsaved: dict[bytes, bytes | None],
    prefix: bytes,
) -> None:
    path = tmp_path_factory.mktemp("store")
    expected: dict[bytes, bytes | None] = {}
    with closing(Store(path, PARTITION)) as store:
        for offset, some in enumerate(saves, 1):
            change(store, some)
            expected |= some
            store.save(offset)
        change(store, unsaved)
        assert_holds(store, expected | unsaved, prefix)
    with closing(Store(path, PARTITION)) as store:
        assert store.offset == len(saves)
        assert_holds(store, dict.fromkeys(unsaved) | expected, prefix)


@settings(max_examples=40)
@given(frozen=changes, meanwhile=changes, prefix=st.sampled_from([b"a", b"b", b"b\xff", b"z"]), is_saved=st.booleans())
def test_changes_are_possible_while_a_frozen_state_is_being_saved(
    tmp_path_factory: pytest.TempPathFactory,
    frozen: dict[bytes, bytes | None],
    meanwhile: dict[bytes, bytes | None],
    prefix: bytes,
    is_saved: bool,
) -> None:
    path = tmp_path_factory.mktemp("store")
    old: dict[bytes, bytes | None] = {b"a": b"old", b"b": b"old"}
    with closing(Store(path, PARTITION)) as store:
        change(store, old)
        store.save(1)
        change(store, frozen)
        save = store.freeze(2)
        assert store.unsaved_bytes == 0
        change(store, meanwhile)
        assert_holds(store, old | frozen | meanwhile, prefix)
        assert store.offset == 1
        if is_saved:
            save()
            assert store.offset == 2
        assert_holds(store, old | frozen | meanwhile, prefix)
    gone = dict.fromkeys(frozen | meanwhile)
    with closing(Store(path, PARTITION)) as store:
        assert store.offset == 1 + is_saved
        assert_holds(store, gone | old | (frozen if is_saved else {}), prefix)


def test_frozen_changes_that_were_never_saved_are_saved_the_next_time(tmp_path: Path) -> None:
    with closing(Store(tmp_path, PARTITION)) as store:
        store.put(b"key", b"1")
        store.freeze(1)
        store.put(b"other", b"2")
        store.save(2)
    with closing(Store(tmp_path, PARTITION)) as store:
        assert (store.offset, store.get(b"key"), store.get(b"other")) == (2, b"1", b"2")


def test_it_reports_the_size_of_unsaved_changes(tmp_path: Path) -> None:
    with closing(Store(tmp_path, PARTITION)) as store:
        store.put(b"key", b"value")
        store.delete(b"other")
        assert store.unsaved_bytes == 13
        store.save(1)
        assert store.unsaved_bytes == 0


def change(store: Store, some: dict[bytes, bytes | None]) -> None:
    for key, value in some.items():
        if value is None:
            store.delete(key)
        else:
            store.put(key, value)


def assert_holds(store: Store, expected: dict[bytes, bytes | None], prefix: bytes) -> None:
    for key, value in expected.items():
        assert store.get(key) == value
    scanned = list(store.scan(prefix))
    assert len(scanned) == len(dict(scanned))
    held = {key: value for key, value in expected.items() if value is not None}
    assert dict(scanned) == {key: value for key, value in held.items() if key.startswith(prefix)}


def test_the_state_of_another_partition_is_the_wrong_state(saved: Path) -> None:
    with pytest.raises(WrongState) as raised:
        Store(saved, "neardup.inbox-4")
    message = str(raised.value)
    assert str(saved) in message
    assert f"expected 'neardup store {VERSION} neardup.inbox-4'" in message
    assert f"got b'neardup store {VERSION} neardup.inbox-3'" in message
    assert "NEARDUP_STATE" in message


def test_a_refused_directory_is_released_for_its_owner(saved: Path) -> None:
    with pytest.raises(WrongState):
        Store(saved, "neardup.inbox-4")
    with closing(Store(saved, PARTITION)) as store:
        assert store.offset == 7


def test_another_layout_version_is_the_wrong_state(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.stream.aggregator.store.VERSION", VERSION + 1)
    with pytest.raises(WrongState, match=rf"expected 'neardup store {VERSION + 1} .* got b'neardup store {VERSION} "):
        Store(saved, PARTITION)


def test_opening_a_directory_twice_is_an_error_that_suggests_another_directory(saved: Path) -> None:
    with closing(Store(saved, PARTITION)) as first:
        with pytest.raises(StateInUse, match="give each worker its own NEARDUP_STATE") as raised:
            Store(saved, PARTITION)
        assert "delete" not in str(raised.value)
        assert first.get(b"key") == b"value" * 100  # the first process is not disturbed


@pytest.mark.parametrize("pattern", ["CURRENT", "MANIFEST-*"])
def test_an_altered_manifest_is_corrupt_state(saved: Path, pattern: str) -> None:
    for path in (saved / "store").glob(pattern):
        overwrite(path)
    with pytest.raises(CorruptState, match="RocksDB cannot open it") as raised:
        Store(saved, PARTITION)
    assert str(saved) in str(raised.value)
    assert "delete it and the log rebuilds it" in str(raised.value)


def test_a_lost_table_is_corrupt_state(saved: Path) -> None:
    tables = list((saved / "store").glob("*.sst"))
    assert tables
    for path in tables:
        path.unlink()
    with pytest.raises(CorruptState):
        Store(saved, PARTITION)


def test_an_altered_table_is_corrupt_state(saved: Path) -> None:
    tables = list((saved / "store").glob("*.sst"))
    assert tables
    for path in tables:
        overwrite(path)
    with pytest.raises(CorruptState):
        Store(saved, PARTITION)


def test_a_file_in_the_way_is_corrupt_state(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"not a database")
    with pytest.raises(CorruptState, match="RocksDB cannot open it"):
        Store(tmp_path, PARTITION)


def test_a_scan_over_an_altered_table_raises_instead_of_ending_early(tmp_path: Path) -> None:
    with closing(Store(tmp_path, PARTITION)) as store:
        for number in range(2000):
            store.put(b"key%04d" % number, random.Random(number).randbytes(100))
        store.save(1)
    Store(tmp_path, PARTITION).close()  # moves the content of RocksDB's log into a table
    (table,) = (tmp_path / "store").glob("*.sst")
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 1
    table.write_bytes(data)
    with closing(Store(tmp_path, PARTITION)) as store:
        with pytest.raises(CorruptState, match="delete it and the log rebuilds it"):
            list(store.scan(b"key"))
        with pytest.raises(CorruptState, match="block checksum mismatch"):
            [store.get(b"key%04d" % number) for number in range(2000)]

"""Tests of the record of processed files: what counts after a crash, state of older releases, damage."""

from pathlib import Path

import pytest

from neardup.errors import CorruptState, WrongState
from neardup.inputs.processed_files import ProcessedFiles, Unfinished, digest_of

NAMES = [b"%d.html" % number for number in range(300)]
DIGESTS = [digest_of(name) for name in NAMES]


def record(path: Path, count: int) -> None:
    """Write the record of the first files, of which every fifth is not a page."""
    files = ProcessedFiles.open(path, 0, 0, [])
    for number, digest in enumerate(DIGESTS[:count]):
        assert files.add(digest, is_page=bool(number % 5)) == number
    files.save(count)


def test_processed_files_are_recognized_by_a_later_run(tmp_path: Path) -> None:
    record(tmp_path / "folders" / "a", 200)
    files = ProcessedFiles.open(tmp_path / "folders" / "a", 200, 0, [])
    assert [digest in files for digest in DIGESTS] == [True] * 200 + [False] * 100
    assert (len(files), files.unfinished) == (200, [])
    assert (tmp_path / "folders" / "a").stat().st_size == 16 * 201


def test_digests_that_end_with_zeros_are_recognized(tmp_path: Path) -> None:
    digests = [b"a" * length + bytes(15 - length) for length in range(16)]
    files = ProcessedFiles.open(tmp_path / "a", 0, 0, [])
    for digest in digests[::2]:
        files.add(digest, is_page=True)
    files.save(8)
    files = ProcessedFiles.open(tmp_path / "a", 8, 0, [])
    assert [digest in files for digest in digests] == [True, False] * 8


def test_files_after_the_valid_ones_do_not_count_and_are_overwritten(tmp_path: Path) -> None:
    record(tmp_path / "a", 200)
    files = ProcessedFiles.open(tmp_path / "a", 150, 0, [])
    assert DIGESTS[149] in files
    assert DIGESTS[150] not in files
    assert files.add(DIGESTS[250], is_page=True) == 150
    files.save(151)
    files = ProcessedFiles.open(tmp_path / "a", 151, 0, [])
    assert DIGESTS[250] in files
    assert (tmp_path / "a").stat().st_size == 16 * 152


def test_only_the_given_number_of_files_becomes_durable(tmp_path: Path) -> None:
    files = ProcessedFiles.open(tmp_path / "a", 0, 0, [])
    for digest in DIGESTS[:5]:
        files.add(digest, is_page=True)
    for count in (3, 3, 5):
        files.save(count)
        assert (tmp_path / "a").stat().st_size == 16 * (count + 1)
    files = ProcessedFiles.open(tmp_path / "a", 5, 0, [])
    assert [digest in files for digest in DIGESTS[:6]] == [True] * 5 + [False]


def test_files_of_a_save_that_was_cut_off_are_listed_in_order(tmp_path: Path) -> None:
    record(tmp_path / "a", 200)
    files = ProcessedFiles.open(tmp_path / "a", 150, 20, [])
    expected = [Unfinished(DIGESTS[number], bool(number % 5)) for number in range(150, 170)]
    assert files.unfinished == expected
    assert DIGESTS[169] in files
    assert DIGESTS[170] not in files


def test_the_count_of_older_releases_stands_for_the_first_paths(tmp_path: Path) -> None:
    for attempt in range(2):  # the second one reads the record that the first one wrote
        files = ProcessedFiles.open(tmp_path / "a", 100, 7 if attempt == 0 else 0, NAMES if attempt == 0 else [])
        assert [digest in files for digest in DIGESTS] == [True] * 100 + [False] * 200
        assert len(files) == 100
        assert files.unfinished == []


def test_the_count_of_older_releases_may_be_larger_than_the_folder(tmp_path: Path) -> None:
    files = ProcessedFiles.open(tmp_path / "a", 10, 0, NAMES[:4])
    assert files.add(DIGESTS[4], is_page=True) == 10
    assert [digest in files for digest in DIGESTS[:4]] == [True] * 4


def test_a_damaged_record_is_a_clear_error(tmp_path: Path) -> None:
    record(tmp_path / "a", 20)
    with pytest.raises(CorruptState, match=r"expected the records of 21 processed files, got 20: .*--again"):
        ProcessedFiles.open(tmp_path / "a", 21, 0, [])
    (tmp_path / "b").write_bytes(b"neardup files 2\n")
    with pytest.raises(WrongState, match=r"expected b'neardup files 1\\n', got b'neardup files 2\\n'"):
        ProcessedFiles.open(tmp_path / "b", 0, 0, [])
    (tmp_path / "c").mkdir()
    with pytest.raises(CorruptState, match="expected the processed files of a folder"):
        ProcessedFiles.open(tmp_path / "c", 0, 0, [])

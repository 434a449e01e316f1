"""Tests of generated pages in files, read back with the reader of the pages topic."""

import gzip
import json
from pathlib import Path

import msgpack
import pytest
from click.testing import CliRunner

from neardup.errors import InvalidTruth
from neardup.messages.pages import page_from_fields, page_from_json
from neardup.sample import sample_crawl
from neardup.sample.files import write_sampled
from neardup.sample.truth import read_truth, truths_in, write_truth
from neardup.signatures.signature import Signatures
from neardup.text.charset import charset_of
from neardup_services.commands.sample import sample


def test_msgpack_preserves_the_page() -> None:
    for made in sample_crawl(200, 1, 8000):
        assert page_from_fields(msgpack.unpackb(write_sampled(made.page, "msgpack"))) == made.page


def test_json_preserves_the_text() -> None:
    signatures = Signatures()
    charsets = set()
    for made in sample_crawl(400, 1, 8000):
        page = page_from_json(write_sampled(made.page, "jsonl"))
        assert (page.url, page.fetched_at, page.content_type) == (
            made.page.url,
            made.page.fetched_at,
            made.page.content_type,
        )
        charsets.add(charset_of(made.page.content, None, made.page.content_type))
        assert signatures.of(page).checksums.tokens == signatures.of(made.page).checksums.tokens
    assert len(charsets) > 2


def test_truth_is_read_back_unchanged() -> None:
    for made in sample_crawl(300, 1, 8000):
        assert read_truth(write_truth(made.truth)) == made.truth


GOOD = {"url": "u", "number": 1, "fetched_at": "t", "kind": "ad", "duplicate_of": 0, "duplicate": True}


@pytest.mark.parametrize(
    ("altered", "expected"),
    [
        ({"number": "1"}, 'number: expected a whole number, got "1"'),
        ({"number": True}, "number: expected a whole number, got true"),
        ({"duplicate": 1}, "duplicate: expected true or false or null, got 1"),
        ({"url": None}, "url: expected text, got null"),
        ({"holds": [1, "2"]}, "holds: expected a list of numbers"),
    ],
)
def test_an_invalid_field_is_named(altered: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidTruth, match=expected):
        read_truth(json.dumps({**GOOD, "resemblance": None, **altered}).encode())


@pytest.mark.parametrize("line", [b"{", b"[]", b"7", b"\xff", b"[" * 100_000])
def test_a_value_that_is_not_an_object_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidTruth, match="expected a JSON object"):
        read_truth(line)


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    path.write_bytes(write_truth(next(sample_crawl(1)).truth) + b"\nwords\n")
    with pytest.raises(InvalidTruth, match=r"truth\.jsonl, line 3: expected a JSON object"):
        list(truths_in(path))


# The command


def test_the_command_writes_pages_and_truth(tmp_path: Path) -> None:
    out, truth = tmp_path / "pages.jsonl.gz", tmp_path / "truth.jsonl"
    options = ["--pages", "30", "--seed", "5", "--mean-bytes", "8000"]
    done = CliRunner().invoke(sample, [*options, "--out", str(out), "--truth", str(truth)])
    assert (done.exit_code, done.output) == (0, "")
    made = list(sample_crawl(30, 5, 8000))
    assert gzip.decompress(out.read_bytes()) == b"".join(write_sampled(each.page, "jsonl") for each in made)
    assert [each for _, each in truths_in(truth)] == [each.truth for each in made]
    first = out.read_bytes()
    CliRunner().invoke(sample, [*options, "--out", str(out)])
    assert out.read_bytes() == first


def test_the_command_writes_msgpack_to_standard_output() -> None:
    done = CliRunner().invoke(sample, ["--pages", "20", "--format", "msgpack", "--out", "-"])
    unpacker = msgpack.Unpacker()
    unpacker.feed(done.stdout_bytes)
    assert [fields["html"] for fields in unpacker] == [made.page.html for made in sample_crawl(20)]


def test_an_unwritable_path_is_a_one_line_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(sample, ["--out", str(tmp_path / "no" / "such.jsonl")])
    assert done.exit_code == 1
    assert "such.jsonl: cannot write: No such file" in done.output

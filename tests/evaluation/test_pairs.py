"""Tests of reading labelled pairs from files."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from neardup.errors import InvalidPair
from neardup.evaluation.pairs import Pair, groups_of, looks_like_markup, pair_from, read_pairs
from tests.evaluation.made import lines, write


def parsed(fields: dict[str, Any]) -> Pair:
    pair = pair_from(json.dumps(fields).encode(), "f", 1)
    assert pair is not None
    return pair


def test_a_string_is_text_unless_it_starts_with_a_tag() -> None:
    pair = parsed({"label": 1, "a": "<p>one</p>", "b": "a < b, and <p> is a tag"})
    assert (pair.a.html, pair.a.text) == (b"<p>one</p>", None)
    assert (pair.b.html, pair.b.text) == (None, "a < b, and <p> is a tag")


@pytest.mark.parametrize("text", ["<!DOCTYPE html>", "\n <html lang=en>", "<!-- x -->", "<br/>", "<?xml version='1'?>"])
def test_markup(text: str) -> None:
    assert looks_like_markup(text)


@pytest.mark.parametrize("text", ["", "one", "<3 you", "< p>", "<- back", "x <p>"])
def test_no_markup(text: str) -> None:
    assert not looks_like_markup(text)


def test_a_page_may_be_an_object_with_type_and_source() -> None:
    fields = {
        "label": True, "a": {"text": "<p>", "url": "https://x.example/1"}, "b": {"html": "b"},
        "url_b": "https://x.example/2",
    }  # fmt: skip
    pair = parsed(fields)
    assert (pair.a.text, pair.b.html, pair.label, pair.same_host) == ("<p>", b"b", True, True)
    fields["url_b"] = "https://y.example/2"
    assert parsed(fields).same_host is False
    del fields["url_b"]
    assert parsed(fields).same_host is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "expected a JSON object"),
        (b"[1]", "got a list"),
        (b'{"a": "x", "b": "y"}', "label: expected 0, 1, false or true, got None"),
        (b'{"label": 2, "a": "x", "b": "y"}', "label: expected"),
        (b'{"label": 1, "a": "x"}', "b: expected a string or an object"),
        (b'{"label": 1, "a": "x", "b": {}}', "b: expected exactly one of html and text"),
    ],
)
def test_an_invalid_line(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(b"\n" + line + b"\n")
    with pytest.raises(InvalidPair, match=r"pairs\.jsonl, line 2: ") as raised:
        read_pairs([path])
    assert message in str(raised.value)


def test_compressed_files_and_several(tmp_path: Path) -> None:
    plain = write(tmp_path / "one.jsonl", lines(2, 1))
    packed = tmp_path / "two.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    pairs = read_pairs([plain, packed])
    assert [pair.source for pair in pairs] == ["one.jsonl"] * 3 + ["two.jsonl.gz"] * 3
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(InvalidPair, match="expected a readable file, got"):
        read_pairs([packed])


def test_a_file_without_pairs(tmp_path: Path) -> None:
    with pytest.raises(InvalidPair, match="expected at least one"):
        read_pairs([write(tmp_path / "none.jsonl", [])])


def test_pairs_that_share_a_page_are_one_group(tmp_path: Path) -> None:
    sides = [("a", "b"), ("c", "d"), ("b", "e"), ("f", "g"), ("d", "e")]
    path = write(tmp_path / "pairs.jsonl", [{"label": 0, "a": a, "b": b} for a, b in sides])
    groups = groups_of(read_pairs([path]))
    assert len(set(groups)) == 2
    assert groups[0] == groups[1] == groups[2] == groups[4] != groups[3]

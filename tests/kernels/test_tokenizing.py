import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.text.tokens import tokens_of, tokens_of_text
from neardup.text.unicode_tables import tables
from tests.support import naive

# This Python can be a twin only for characters of its own Unicode version, which may differ from that of the tables.
_KNOWN = st.characters(codec="utf-8").filter(lambda char: unicodedata.category(char) != "Cn" and _in_tables(char))
_TRICKY = st.sampled_from(
    "aZ ß İ ſ ﬁ ½ Å é \u0301\u0323\u0327\u0345\u200d\u00ad 漢 字 か ㍿ ｶﾞ กำ \u0e33 한 \U0001d400 \ufdfa ·'_-"
)
TEXT = st.text(st.one_of(_TRICKY, _KNOWN, st.characters(max_codepoint=127)), max_size=60)


def _in_tables(char: str) -> bool:
    known = tables()
    code = ord(char)
    assigned = bool(known.stage2[int(known.stage1[code >> 8]) * 256 + (code & 255)])
    return assigned or unicodedata.category(char)[0] in "ZPSC"


@given(TEXT, st.integers(1, 4))
def test_tokens_equal_the_twins(text: str, ngram: int) -> None:
    ref = naive.canonical_tokens(text.encode(), ngram)
    comp = tokens_of_text(text, character_ngram=ngram)
    assert comp.words() == ref
    assert comp.hashes.tolist() == [naive.murmur3(token.encode()) for token in ref]


@given(st.lists(st.one_of(st.binary(max_size=6), TEXT.map(str.encode)), max_size=8).map(b"".join))
def test_invalid_utf8_separates_tokens(data: bytes) -> None:
    assert tokens_of(np.frombuffer(data, dtype=np.uint8)).words() == naive.canonical_tokens(data, 2)


@given(TEXT, st.integers(0, 10))
def test_tokens_are_limited(text: str, limit: int) -> None:
    ref = naive.canonical_tokens(text.encode(), 2)
    comp = tokens_of(np.frombuffer(text.encode(), dtype=np.uint8), limit=limit)
    assert comp.words() == ref[:limit]
    assert comp.cut == (len(ref) > limit)


# Blocks have 64 bytes: words end, start and break on both sides of block boundaries.
LONG = st.lists(st.one_of(st.text(st.sampled_from("aZ9 ,"), min_size=50, max_size=80), TEXT), max_size=6).map("".join)


@given(LONG, st.integers(0, 70))
def test_long_texts_equal_the_twins(text: str, limit: int) -> None:
    ref = naive.canonical_tokens(text.encode(), 2)
    assert tokens_of_text(text).words() == ref
    cut = tokens_of(np.frombuffer(text.encode(), dtype=np.uint8), limit=limit)
    assert cut.words() == ref[:limit]
    assert cut.cut == (len(ref) > limit)


@pytest.mark.parametrize("size", [63, 64, 65, 127, 128, 129, 200])
@pytest.mark.parametrize("end", ["", " ", "é", "漢", "\u0301", "\x80"])
def test_texts_that_end_at_a_block_boundary(size: int, end: str) -> None:
    text = ("Word and 7 more, " * 20)[:size] + end
    assert tokens_of_text(text).words() == naive.canonical_tokens(text.encode(), 2)


def test_the_output_buffer_grows_with_the_text() -> None:
    text = "\ufdfa" * 2000 + " ㍿" * 2000  # 3 bytes become 33, and one character becomes four
    assert tokens_of_text(text).words() == naive.canonical_tokens(text.encode(), 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("STRASSE", "straße"),
        ("é", "e\u0301"),
        ("a\u0323\u0301", "a\u0301\u0323"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("soft\u00adhyphen", "softhyphen"),
        ("ﬁn", "fin"),
        ("ΑΣ", "ας"),
        ("㍿", "株式会社"),
        ("ｶﾞｷﾞ", "ガギ"),
    ],
)
def test_spellings_of_the_same_text(one: str, other: str) -> None:
    assert tokens_of_text(one).words() == tokens_of_text(other).words()


def test_scripts_without_spaces_become_character_ngrams() -> None:
    assert tokens_of_text("near漢字検索 dup").words() == ["near", "漢字", "字検", "検索", "dup"]
    assert tokens_of_text("字").words() == ["字"]

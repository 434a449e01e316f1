"""Tests of composition and decomposition by the frozen tables against those of the interpreter."""

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.text.languages import Stems
from neardup.text.normalization import composed, decomposed
from neardup.text.tokens import tokens_of_text
from tests.kernels.test_tokenizing import TEXT

LIBRARY = Path(neardup.__file__).parent

_MARKED = st.text(
    st.sampled_from("aeiouycnszgAиеΐϋωاو\u0bc6\u0bbe\u0928\u0300\u0301\u0302\u0303\u0306\u0308\u030a\u030c\u031b"
                    "\u0323\u0327\u0328\u0345\u0653\u0654\u093c\u0316"), max_size=12,
)  # fmt: skip


def _has_hangul(word: str) -> bool:
    return any("\u1100" <= char <= "\u11ff" for char in word)


@given(st.one_of(TEXT, _MARKED))
def test_tokens_are_composed_as_nfc_and_decomposed_again(text: str) -> None:
    for word in tokens_of_text(text).words():
        if not _has_hangul(word) and unicodedata.is_normalized("NFD", word):
            assert composed(word) == unicodedata.normalize("NFC", word)
        assert decomposed(composed(word)) == word


@pytest.mark.parametrize(("language", "words"), [("german", "Häuser hausern"), ("french", "continué continuée")])
def test_stems_use_composed_letters(language: str, words: str) -> None:
    one, other = Stems(language).of(tokens_of_text(words)).tolist()
    assert one == other


def test_only_the_generator_of_the_tables_reads_characters_from_the_interpreter() -> None:
    reads = re.compile(r"^\s*(import|from) (unicodedata|neardup\.text\.generate_unicode_tables)", re.MULTILINE)
    found = [path.name for path in LIBRARY.rglob("*.py") if reads.search(path.read_text())]
    assert found == ["generate_unicode_tables.py"]

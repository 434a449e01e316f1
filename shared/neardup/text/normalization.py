"""Letters with their marks as one character (NFC) and apart (NFD), by the package's frozen tables.

Tokens are decomposed; stemmers know composed letters. The interpreter's unicodedata would do, but differs between
Pythons in what characters it knows, and stems are part of a fingerprint.
"""

from functools import cache

from neardup.text.unicode_tables import tables


def composed(word: str) -> str:
    """NFC of a token (UAX 15), but for Hangul, whose syllables stay apart: no stemmer knows them."""
    pairs, _ = _pairs()
    out: list[str] = []
    letter = -1  # where in `out` the letter stands that marks may join
    last = 0  # rank of the mark before, if it did not join
    for char in word:
        rank = _rank(char)
        # A mark joins the letter unless one between them has its rank or a higher one, or is none.
        free = letter == len(out) - 1 or 0 < last < rank
        joined = pairs.get((out[letter], char)) if letter >= 0 and free else None
        if joined is not None:
            out[letter] = joined
            continue
        if rank == 0:
            letter = len(out)
        last = rank
        out.append(char)
    return "".join(out)


def decomposed(word: str) -> str:
    """NFD of what `composed` made: letters apart from their marks, and these in the order of their ranks."""
    _, parts = _pairs()
    while any(char in parts for char in word):
        word = "".join(parts.get(char, char) for char in word)
    out: list[str] = []
    for char in word:
        place, rank = len(out), _rank(char)
        while rank and place and _rank(out[place - 1]) > rank:
            place -= 1
        out.insert(place, char)
    return "".join(out)


@cache
def _pairs() -> tuple[dict[tuple[str, str], str], dict[str, str]]:
    rows = [tuple(map(chr, row)) for row in tables().compositions.tolist()]
    return {(letter, mark): whole for letter, mark, whole in rows}, {
        whole: letter + mark for letter, mark, whole in rows
    }


def _rank(char: str) -> int:
    known, code = tables(), ord(char)
    return int(known.stage2[int(known.stage1[code >> 8]) * 256 + (code & 255)]) >> 3 & 255

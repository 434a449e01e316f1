"""Composition (NFC) and decomposition (NFD) of words, by the package's frozen Unicode tables.

Tokens are decomposed, whereas stemmers expect composed letters. The standard library's `unicodedata` is not used,
because its Unicode version depends on the Python version, and fingerprints depend on stems.
"""

from functools import cache

from neardup.text.unicode_tables import tables


def composed(word: str) -> str:
    """Return the NFC of a token (UAX 15), except for Hangul, which stays decomposed: no stemmer supports it."""
    pairs, _ = _pairs()
    out: list[str] = []
    letter = -1  # position in `out` of the letter that marks may join
    last = 0  # rank of the previous mark, if that mark did not join
    for char in word:
        rank = _rank(char)
        # A mark joins the letter unless a character between them is not a mark or has the same or a higher rank.
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
    """Return the NFD of a result of `composed`: letters separate from their marks, and marks in order of rank."""
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

"""Script that generates `unicode_tables.npz`: character classes and mappings, compositions, and character references.

    python -m neardup.text.generate_unicode_tables

The tables are part of the package so that tokens are the same on every machine, whichever Unicode version its Python
supports. The file in the package has Unicode 15.1, from Python 3.13. Generating it under a Python with another Unicode
version changes tokens, and with them the signature version, which contains the Unicode version.
"""

import html.entities
import sys
import unicodedata
from typing import Any

import numpy as np

from neardup.text.unicode_tables import FILE, name_key

SEPARATOR, WORD, UNSPACED, MARK, IGNORABLE = range(5)

# Scripts written without spaces between words: Kana, Bopomofo, Han, Yi, Thai, Lao, Myanmar, Khmer, Tai, Javanese ...
UNSPACED_RANGES = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19DF), (0x1A20, 0x1AAF), (0x1B00, 0x1B7F),
    (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x303C), (0x3041, 0x312F), (0x31A0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xA4CF), (0xA980, 0xA9FF), (0xAA60, 0xAADF), (0xF900, 0xFAFF),
    (0x16FE0, 0x18DFF), (0x1AFF0, 0x1B2FF), (0x20000, 0x3FFFF),
)  # fmt: skip
# The code points with the property Default_Ignorable_Code_Point that are not in category Cf.
IGNORABLE_RANGES = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF),
)  # fmt: skip


def within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    """Return True if the code point is in one of the ranges."""
    return any(low <= code <= high for low, high in ranges)


def ignorable(code: int) -> bool:
    """Return True for invisible characters such as soft hyphens, joiners and variation selectors."""
    return unicodedata.category(chr(code)) == "Cf" or within(code, IGNORABLE_RANGES)


def class_of(code: int) -> int:
    """Return the class by which the tokenizer treats a code point."""
    category = unicodedata.category(chr(code))
    if ignorable(code):
        return IGNORABLE
    if category[0] == "M":
        return MARK
    if category[0] == "N":
        return UNSPACED if category == "Nl" and within(code, UNSPACED_RANGES) else WORD
    if category[0] == "L":
        return UNSPACED if within(code, UNSPACED_RANGES) else WORD
    return SEPARATOR


def canonical(code: int) -> str:
    """Return the canonical form of a character: compatibility caseless matching (Unicode 3.13, D146), no ignorables."""
    text = unicodedata.normalize("NFD", chr(code))
    for _ in range(3):
        text = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in text if not ignorable(ord(char)))


def characters() -> dict[str, np.ndarray]:
    """Return the two-stage table of characters.

    `stage1[code >> 8]` is the row of `stage2` for a code point. Each entry of `stage2` is
    class | combining class << 3 | (position in `mapping` + 1) << 11.
    """
    mapping = [0]
    entries = np.zeros(0x110000, dtype=np.int32)
    for code in range(0x110000):
        if 0xD800 <= code <= 0xDFFF:
            continue
        entry = class_of(code) | unicodedata.combining(chr(code)) << 3
        becomes = canonical(code)
        if becomes != chr(code) and class_of(code) != IGNORABLE:
            entry |= (len(mapping) + 1) << 11
            mapping += [len(becomes), *map(ord, becomes)]
        entries[code] = entry
    rows, stage1 = np.unique(entries.reshape(-1, 256), axis=0, return_inverse=True)
    for code in mapping[2:]:
        assert code < 64 or canonical(code) == chr(code), hex(code)
    return {"stage1": stage1.astype(np.uint16).ravel(), "stage2": rows.ravel(), "mapping": np.array(mapping, np.uint32)}


def compositions() -> dict[str, np.ndarray]:
    """Return rows of a letter, a mark and their NFC composition, for letters that tokens can have.

    Hangul is not included: it is composed by arithmetic, without a table.
    """
    rows = []
    for code in range(0x110000):
        char = chr(code)
        parts = unicodedata.decomposition(char).split()
        is_pair = len(parts) == 2 and unicodedata.normalize("NFC", char) == char
        if is_pair and canonical(code) == unicodedata.normalize("NFD", char):
            rows.append([*(int(part, 16) for part in parts), code])
    return {"compositions": np.array(rows, dtype=np.uint32)}


def references() -> dict[str, np.ndarray]:
    """Return the named character references of HTML as an open-addressed table from name keys to two code points."""
    size = 8192
    keys = np.zeros(size, dtype=np.uint64)
    codes = np.zeros((size, 2), dtype=np.uint32)
    names = html.entities.html5
    assert len({name_key(name) for name in names}) == len(names)
    for name, text in names.items():
        key = name_key(name)
        slot = key >> 32 & size - 1
        while keys[slot]:
            slot = slot + 1 & size - 1
        keys[slot] = key
        codes[slot, : len(text)] = [ord(char) for char in text]
    return {"reference_keys": keys, "reference_codes": codes}


def main() -> None:
    """Write the file and print its Unicode version and size."""
    version = unicodedata.unidata_version
    arrays: dict[str, Any] = {"unicode": np.array(version), **characters(), **compositions(), **references()}
    np.savez_compressed(FILE, **arrays)
    sys.stdout.write(f"{FILE}: Unicode {version}, {FILE.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()

"""The frozen tables: classes and mappings of characters, named character references, and flags of HTML elements.

`generate_unicode_tables` writes the file `unicode_tables.npz`. The tables are loaded once and never change, so all
threads share them.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.text import markup, references

FILE: Final = Path(__file__).with_name("unicode_tables.npz")

_FORMATTING: Final = (
    "abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q ruby rb s samp small span strike"
    " strong sub sup time tt u var wbr"
)
_VOID: Final = "area base basefont bgsound br col embed frame hr img input keygen link meta param source track"
_BLOCK: Final = (
    "address article aside blockquote center details dialog dd dir div dl dt fieldset figcaption figure footer form h1"
    " h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table ul xmp"
)
_REPLACES: Final = "li option tr td th dt dd p optgroup tbody thead tfoot"
_ELEMENTS: Final = {
    "script": markup.BREAK | markup.RAW | markup.SCRIPT,
    "style": markup.BREAK | markup.RAW,
    "noscript": markup.BREAK | markup.RAW,
    "noembed": markup.BREAK | markup.RAW,
    "noframes": markup.BREAK | markup.RAW,
    "iframe": markup.BREAK | markup.RAW,
    "title": markup.BREAK | markup.TEXTUAL,
    "textarea": markup.BREAK | markup.TEXTUAL,
    "plaintext": markup.BREAK | markup.PLAIN,
    "template": markup.BREAK | markup.DROP,
    "svg": markup.BREAK | markup.DROP | markup.FOREIGN,
    "audio": markup.BREAK | markup.DROP,
    "video": markup.BREAK | markup.DROP,
    "canvas": markup.BREAK | markup.DROP,
    "datalist": markup.BREAK | markup.DROP,
    "math": markup.BREAK | markup.FOREIGN,
    "a": markup.BREAK | markup.LINK,
}
_BOILERPLATE: Final = "nav header footer aside form menu dialog select button"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables as arrays, in the form that the kernels accept."""

    unicode: str
    stage1: NDArray[np.uint16]
    stage2: NDArray[np.int32]
    mapping: NDArray[np.uint32]
    compositions: NDArray[np.uint32]
    reference_keys: NDArray[np.uint64]
    reference_codes: NDArray[np.uint32]
    tag_keys: NDArray[np.uint64]
    tag_flags: NDArray[np.int64]


@cache
def tables() -> Tables:
    """Return the tables, loaded from the file in the package."""
    with np.load(FILE) as stored:
        arrays = {name: stored[name] for name in stored.files}
    keys, flags = _tag_table()
    return Tables(
        unicode=str(arrays["unicode"]),
        stage1=arrays["stage1"],
        stage2=arrays["stage2"],
        mapping=arrays["mapping"],
        compositions=arrays["compositions"],
        reference_keys=arrays["reference_keys"],
        reference_codes=arrays["reference_codes"],
        tag_keys=keys,
        tag_flags=flags,
    )


def element_flags() -> dict[str, int]:
    """Return the flags of each HTML element that is not a plain separator, by name."""
    elements = dict(_ELEMENTS)
    for name in _FORMATTING.split():
        elements[name] = 0
    for names, flag in (
        (_VOID, markup.VOID),
        (_BLOCK, markup.BLOCK),
        (_REPLACES, markup.REPLACES),
        (_BOILERPLATE, markup.BOILERPLATE),
    ):
        for name in names.split():
            elements[name] = elements.get(name, markup.BREAK) | flag
    elements["wbr"] = markup.VOID  # a possible line break within a word, which does not separate words
    return elements


def name_key(name: str) -> int:
    """Return the key of a name: the FNV hash of its bytes, as the kernels compute it."""
    key = int(references.FNV_START)
    for byte in name.encode():
        key = (key * int(references.FNV) ^ byte) & 0xFFFFFFFFFFFFFFFF
    return key


def _tag_table() -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    keys = np.zeros(512, dtype=np.uint64)
    flags = np.zeros(512, dtype=np.int64)
    for name, value in element_flags().items():
        slot = name_key(name) >> 20 & keys.size - 1
        while keys[slot]:
            slot = slot + 1 & keys.size - 1
        keys[slot] = name_key(name)
        flags[slot] = value
    return keys, flags

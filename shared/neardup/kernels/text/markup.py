"""Extraction of the visible text of an HTML page, in one pass over its bytes and without a tree.

This is the tokenizer of the HTML standard (§13.2.5: tags, attributes, comments, raw text, character references) with
a simplified stack of open elements, which serves only to find the end of hidden elements. The depth of the stack is
limited, so time is linear for any nesting. Tree builders walk their stack for every tag; one of them took 16 s for
400 KB of nested <div>.
"""

# ruff: noqa: SIM109, SIM110

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.text.references import AMPERSAND, FNV, FNV_START, copy_text, reference

BREAK = 1  # separates words, as all elements do except formatting
VOID = 2  # has no content
RAW = 4  # content is not markup and not shown
TEXTUAL = 8  # content is text and character references, no tags
DROP = 16  # content is not shown
BOILERPLATE = 32  # left out if only main content is requested
LINK = 64
REPLACES = 128  # ends an open element of the same name
BLOCK = 256  # ends an open paragraph
PLAIN = 512  # the rest of the page is text
FOREIGN = 1024  # may be closed by "/>"
SCRIPT = 2048

_LT, _GT, _SLASH, _QUOTE, _TICK, _EQUALS, _BANG, _DASH = 60, 62, 47, 34, 39, 61, 33, 45
_P_KEY = (np.uint64(7) * np.uint64(0x100000001B3) & np.uint64(0xFFFFFFFFFFFFFFFF)) ^ np.uint64(112)

# Flags of each byte: 1 for white space, 2 if it ends the name of a tag, 4 if it ends the name of an attribute.
_ENDS = np.zeros(256, dtype=np.uint8)
_ENDS[[9, 10, 12, 13, 32]] = 7
_ENDS[[_SLASH, _GT]] = 6
_ENDS[_EQUALS] = 4

_STYLE = np.frombuffer(b"style", dtype=np.uint8)
_HIDDEN = np.frombuffer(b"hidden", dtype=np.uint8)
_DISPLAY_NONE = np.frombuffer(b"display:none", dtype=np.uint8)
_VISIBILITY_HIDDEN = np.frombuffer(b"visibility:hidden", dtype=np.uint8)


@njit(nogil=True, cache=True)
def _letter(b: int) -> bool:
    return 97 <= (b | 32) <= 122


@njit(nogil=True, cache=True)
def _find(html: NDArray[np.uint8], at: int, what: int) -> int:
    # The inner loop has no exit, so LLVM compiles it to vector instructions.
    while at + 32 <= html.size:
        found = False
        for i in range(32):
            found |= html[at + i] == what
        if found:
            break
        at += 32
    while at < html.size and html[at] != what:
        at += 1
    return at


@njit(nogil=True, cache=True)
def _flags(key: np.uint64, keys: NDArray[np.uint64], flags: NDArray[np.int64]) -> int:
    mask = keys.size - 1
    slot = np.int64(key >> np.uint64(20)) & mask
    while keys[slot] != 0:
        if keys[slot] == key:
            return flags[slot]
        slot = (slot + 1) & mask
    return np.int64(BREAK)


@njit(nogil=True, cache=True)
def _end_of_comment(html: NDArray[np.uint8], at: int) -> int:
    # `at` is the position after "<!--". "<!-->" and "<!--->" are complete comments.
    if at < html.size and html[at] == _GT:
        return at + 1
    if at + 1 < html.size and html[at] == _DASH and html[at + 1] == _GT:
        return at + 2
    while True:
        at = _find(html, at, _GT)
        if at >= html.size:
            return html.size
        if html[at - 1] == _DASH and html[at - 2] == _DASH:
            return at + 1
        if html[at - 1] == _BANG and html[at - 2] == _DASH and html[at - 3] == _DASH:
            return at + 1
        at += 1


@njit(nogil=True, cache=True)
def _named(html: NDArray[np.uint8], at: int, name: int, length: int) -> bool:
    # Return True if html[at:] begins with a complete tag name that equals html[name : name + length] ignoring case.
    if at + length > html.size:
        return False
    for i in range(length):
        if html[at + i] | 32 != html[name + i] | 32:
            return False
    if at + length == html.size:
        return True
    return _ENDS[html[at + length]] & 2 != 0


@njit(nogil=True, cache=True)
def _end_of_raw(html: NDArray[np.uint8], at: int, name: int, length: int, script: bool) -> int:
    # Return the start of the matching end tag. In a script, "<!-- <script>" hides the next end tag (from §13.2.5.17).
    escaped = False
    double = False
    while True:
        if escaped:
            while at < html.size and html[at] != _LT:
                if html[at] == _GT and html[at - 1] == _DASH and html[at - 2] == _DASH:
                    escaped = double = False
                at += 1
        else:
            at = _find(html, at, _LT)
        if at + 1 >= html.size:
            return html.size
        after = html[at + 1]
        if after == _SLASH and _named(html, at + 2, name, length):
            if not double:
                return at
            double = False
        elif script and after == _BANG and at + 3 < html.size and html[at + 2] == _DASH and html[at + 3] == _DASH:
            escaped = True
            at += 1
        elif escaped and _named(html, at + 1, name, length):
            double = True
        at += 1


@njit(nogil=True, cache=True)
def _hides(html: NDArray[np.uint8], start: int, end: int) -> bool:
    # Return True if a style contains display:none or visibility:hidden, ignoring white space and case.
    for at in range(start, end - 11):
        first = html[at] | 32
        if first == 100 and _matches(html, at, end, _DISPLAY_NONE):
            return True
        if first == 118 and _matches(html, at, end, _VISIBILITY_HIDDEN):
            return True
    return False


@njit(nogil=True, cache=True)
def _matches(html: NDArray[np.uint8], at: int, end: int, text: NDArray[np.uint8]) -> bool:
    for i in range(text.size):
        while at < end and _ENDS[html[at]] & 1:
            at += 1
        if at >= end:
            return False
        b = np.int64(html[at])
        if (b | 32 if _letter(b) else b) != text[i]:
            return False
        at += 1
    return True


@njit(nogil=True, cache=True)
def _attributes(html: NDArray[np.uint8], at: int) -> tuple[int, bool, bool]:
    # Skip the attributes from the end of a tag's name on. Return (position after ">", hidden, ends with "/>"). The
    # position is size + 1 if the tag is not finished.
    size = html.size
    hidden = False
    while True:
        slash = False
        while at < size and _ENDS[html[at]] & 2 and html[at] != _GT:
            slash = html[at] == _SLASH
            at += 1
        if at >= size:
            return size + 1, hidden, False
        if html[at] == _GT:
            return at + 1, hidden, slash
        name = at
        at += 1
        while at < size:
            if _ENDS[html[at]] & 4:
                break
            at += 1
        length = at - name
        hiding = length == 6 and _spelled(html, name, _HIDDEN)
        hidden = hidden or hiding
        while at < size and _ENDS[html[at]] & 1:
            at += 1
        if at >= size:
            return size + 1, hidden, False
        if html[at] != _EQUALS:
            continue
        at += 1
        while at < size and _ENDS[html[at]] & 1:
            at += 1
        if at >= size:
            return size + 1, hidden, False
        b = html[at]
        if b == _QUOTE or b == _TICK:
            value = at + 1
            at = _find(html, value, b)
            end = at
            at += 1
        else:
            value = at
            while at < size and html[at] != _GT and not _ENDS[html[at]] & 1:
                at += 1
            end = at
        if length == 5 and not hidden and _spelled(html, name, _STYLE):
            hidden = _hides(html, value, min(end, size))


@njit(nogil=True, cache=True)
def _spelled(html: NDArray[np.uint8], at: int, text: NDArray[np.uint8]) -> bool:
    for i in range(text.size):
        if html[at + i] | 32 != text[i]:
            return False
    return True


@njit(nogil=True, cache=True)
def _ink(out: NDArray[np.uint8], start: int, end: int) -> int:
    count = 0
    for i in range(start, end):
        count += out[i] > 32
    return count


@njit(nogil=True, cache=True)
def visible_text(
    html: NDArray[np.uint8],
    tag_keys: NDArray[np.uint64],
    tag_flags: NDArray[np.int64],
    reference_keys: NDArray[np.uint64],
    reference_codes: NDArray[np.uint32],
    main: bool,
    nesting: int,
    out: NDArray[np.uint8],
) -> tuple[int, int]:
    """Write the text to `out` and return (bytes written, deepest nesting).

    `out` must have room for twice the page plus 64 bytes. Elements that separate words become a line break. Elements
    nested deeper than `nesting` are not put on the stack; the deepest nesting is then returned as `nesting` + 1. With
    `main`, navigation elements and blocks that consist of links to at least a third are left out.
    """
    size = html.size
    stack = np.empty(nesting, dtype=np.uint64)
    depth = 0
    deepest = 0
    hidden_at = -1  # depth of the open element that hides its content, or -1
    over = 0
    o = 0
    at = 0
    block = 0
    link_from = -1
    linked = 0
    while at < size:
        if hidden_at >= 0:
            at = _find(html, at, _LT)
        else:
            while at < size:
                b = html[at]
                if b == _LT:
                    break
                if b == AMPERSAND:
                    at, o = reference(html, at, reference_keys, reference_codes, out, o)
                else:
                    out[o] = b
                    o += 1
                    at += 1
        if at + 1 >= size:
            if at < size and hidden_at < 0:
                out[o] = _LT
                o += 1
            break
        b = np.int64(html[at + 1])
        closing = b == _SLASH
        if closing and at + 2 < size:
            b = np.int64(html[at + 2])
        if not _letter(b):
            if b == _BANG and at + 3 < size and html[at + 2] == _DASH and html[at + 3] == _DASH and not closing:
                at = _end_of_comment(html, at + 4)
            elif closing or b == _BANG or b == 63:
                at = _find(html, at + 1, _GT) + 1
            else:
                if hidden_at < 0:
                    out[o] = _LT
                    o += 1
                at += 1
            continue
        at += 2 if closing else 1
        name = at
        key = FNV_START
        while at < size:
            b = np.int64(html[at])
            if _ENDS[html[at]] & 2:
                break
            key = key * FNV ^ np.uint64(b | 32 if _letter(b) else b)
            at += 1
        length = at - name
        at, hides, closed = _attributes(html, at)
        if at > size:
            break
        flags = _flags(key, tag_keys, tag_flags)
        if hidden_at < 0 and flags & BREAK:
            if main:
                if link_from >= 0:
                    linked += _ink(out, link_from, o)
                    link_from = o
                if flags & LINK:
                    link_from = -1 if closing else o
                else:
                    if 3 * linked >= _ink(out, block, o):
                        o = block
                    block = o
                    linked = 0
                    link_from = min(link_from, o)
            if o > 0 and out[o - 1] != 10:
                out[o] = 10
                o += 1
        if closing:
            i = depth - 1
            while i >= 0 and stack[i] != key:
                i -= 1
            if i >= 0:
                depth = i
                if hidden_at >= i:
                    hidden_at = -1
            continue
        if flags & VOID:
            continue
        if depth > 0 and (
            (flags & REPLACES and stack[depth - 1] == key) or (flags & BLOCK and stack[depth - 1] == _P_KEY)
        ):
            depth -= 1
            if hidden_at >= depth:
                hidden_at = -1
        if flags & (RAW | TEXTUAL):
            end = _end_of_raw(html, at, name, length, flags & SCRIPT != 0)
            if flags & TEXTUAL and hidden_at < 0 and not hides:
                o = copy_text(html, at, end, reference_keys, reference_codes, out, o)
            at = end
            if at < size:
                at, hides, closed = _attributes(html, at + 2 + length)
            if hidden_at < 0:
                out[o] = 10
                o += 1
            continue
        if flags & PLAIN:
            if hidden_at < 0:
                for i in range(at, size):
                    out[o] = html[i]
                    o += 1
            break
        if flags & FOREIGN and closed:
            continue
        hides = hides or flags & DROP != 0 or (main and flags & BOILERPLATE != 0)
        if hidden_at < 0 and not hides and flags & BREAK == 0:
            continue  # formatting elements are often misnested, and their end has no effect
        if depth < nesting:
            stack[depth] = key
            if hides and hidden_at < 0:
                hidden_at = depth
            depth += 1
            deepest = max(deepest, depth)
        else:
            over += 1
    if main:
        if link_from >= 0:
            linked += _ink(out, link_from, o)
        if 3 * linked >= _ink(out, block, o):
            o = block
    return o, deepest + (over > 0)

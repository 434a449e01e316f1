"""Compiling functions that are called for every character, and allocate nothing.

Compiled as usual, a function counts the references to its arrays at every call, with atomic instructions, unless LLVM
inlines it: more work than a character is. These borrow the arrays that their caller holds.
"""

from typing import Any, TypeVar

from numba import njit

F = TypeVar("F")


def njit_no_refcounts(function: F) -> F:
    """As numba's njit with nogil and cache. Numba refuses a function that would have to allocate."""
    compile_: Any = njit
    compiled: F = compile_(nogil=True, cache=True, _nrt=False)(function)
    return compiled

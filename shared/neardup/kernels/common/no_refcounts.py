"""A decorator for functions that are called for every character or key and allocate nothing.

By default a compiled function updates the reference counts of its array arguments on every call, with atomic
instructions, unless LLVM inlines it. That costs more than the work on a character. Functions compiled with this
decorator rely on the references that their caller holds.
"""

from typing import Any, TypeVar

from numba import njit

F = TypeVar("F")


def njit_no_refcounts(function: F) -> F:
    """Compile a function without reference counts, with nogil and cache. Numba rejects functions that allocate."""
    compile_: Any = njit
    compiled: F = compile_(nogil=True, cache=True, _nrt=False)(function)
    return compiled

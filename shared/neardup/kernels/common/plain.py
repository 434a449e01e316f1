"""Passing a group of arguments to a kernel quickly."""

from typing import TypeVar

Group = TypeVar("Group", bound=tuple[object, ...])


def plain(group: Group) -> Group:
    """Return the fields of a NamedTuple as a plain tuple, typed as the NamedTuple.

    Numba takes about 0.4 µs longer to find the compiled version of a kernel for each NamedTuple among the arguments,
    and 0.05 µs for each plain tuple. A call with a small batch takes 10 µs in all. A kernel that may receive a plain
    tuple unpacks it by position.
    """
    fields: Group = tuple(group)
    return fields

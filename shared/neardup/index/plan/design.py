"""Designs of the exact search: the blocks of bits that lead in each table (Manku 2007 §3.1).

Split the bits into r > k blocks. Two fingerprints that differ in at most k bits agree in at least r - k whole blocks,
so one table for each choice of r - k leading blocks finds all such pairs. The k remaining blocks can be split again in
the same way, which multiplies the tables and adds to the leading bits. A design is the list of r at each level: (5,)
gives the 10 tables of the paper, and (4, 4) its 16 tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb, inf, prod
from typing import Final

from neardup.index.plan.table import BITS, Table

MAX_K: Final = 7


@dataclass(frozen=True, slots=True)
class Design:
    """A design that finds all fingerprints within k bits, given by the number of blocks at each level."""

    k: int
    splits: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.k <= MAX_K or any(r <= self.k for r in self.splits):
            raise ValueError(f"expected k from 0 to {MAX_K} and more than k blocks at each level, got {self}")

    @property
    def table_count(self) -> int:
        """Number of tables: the product of the numbers of choices at each level."""
        return prod(comb(r, self.k) for r in self.splits)

    @property
    def least_leading(self) -> int:
        """The smallest number of leading bits, p_i, of all tables."""
        return _least_leading(BITS, self.k, self.splits)

    def tables(self) -> tuple[Table, ...]:
        """Return all tables, in a fixed order."""
        return tuple(
            Table((*lead, *rest), len(lead)) for lead, rest in _choices((), tuple(range(BITS)), self.k, self.splits)
        )


def block_sizes(bits: int, blocks: int) -> list[int]:
    """Return block sizes that differ by at most 1, larger ones first: 11 11 11 11 10 10 for 64 bits in 6 blocks."""
    small, larger = divmod(bits, blocks)
    return [small + (number < larger) for number in range(blocks)]


def _choices(
    lead: tuple[int, ...], rest: tuple[int, ...], k: int, splits: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    if not splits:
        yield lead, rest
        return
    blocks, at = [], 0
    for size in block_sizes(len(rest), splits[0]):
        blocks.append(rest[at : at + size])
        at += size
    for chosen in combinations(range(splits[0]), splits[0] - k):
        leading = tuple(bit for number in chosen for bit in blocks[number])
        others = tuple(bit for number in range(splits[0]) if number not in chosen for bit in blocks[number])
        yield from _choices(lead + leading, others, k, splits[1:])


@cache
def _least_leading(bits: int, k: int, splits: tuple[int, ...]) -> int:
    if not splits:
        return 0
    sizes = block_sizes(bits, splits[0])
    larger = sum(size > sizes[-1] for size in sizes)
    wanted, totals = splits[0] - k, set()
    for count in range(max(0, wanted - (len(sizes) - larger)), min(wanted, larger) + 1):
        totals.add(wanted * sizes[-1] + count)
    return min(total + _least_leading(bits - total, k, splits[1:]) for total in totals)


def tables_needed(f: float, k: int, d: float, tau: float) -> float:
    """Return X(f, k, d) of Manku 2007 §3.1.2, on real block sizes: the fewest tables with which d falls to tau.

    tau is log2(pages) minus the smallest p_i allowed. The recursion ends at d <= tau, where the paper has d < tau,
    because the smallest p_i allowed is itself allowed. The result is infinite if no split reaches tau.
    """
    if d <= tau + 1e-9:
        return 1
    if f < 1 or k == 0:
        return 1 if k == 0 and d - f <= tau else inf
    best = inf
    for r in range(k + 1, int(f) + 1):
        if comb(r, k) >= best:
            break
        best = min(best, comb(r, k) * tables_needed(f * k / r, k, d - (r - k) * f / r, tau))
    return best


def designs(k: int, most_tables: int) -> list[Design]:
    """Return the designs of up to `most_tables` tables whose least p_i exceeds that of any design with fewer tables."""
    best: list[Design] = []
    found = sorted(_designs(k, most_tables, ()), key=lambda each: (each.table_count, -each.least_leading))
    for design in found:
        if not best or design.least_leading > best[-1].least_leading:
            best.append(design)
    return best


def _designs(k: int, most_tables: int, splits: tuple[int, ...]) -> Iterator[Design]:
    if k == 0:
        # Only equal fingerprints match, so one table suffices, in which all bits lead.
        yield Design(0, (1,))
        return
    yield Design(k, splits)
    remaining = BITS
    for r in splits:
        remaining = remaining * k // r
    for r in range(k + 1, remaining + 1):
        if comb(r, k) > most_tables:
            break
        yield from _designs(k, most_tables // comb(r, k), (*splits, r))


def fewest_tables(k: int, least_leading: int) -> Design:
    """Return the design with the fewest tables whose p_i are all at least `least_leading`.

    Raises ValueError if there is no such design.
    """
    most = 1
    while most <= 2**24:
        for design in designs(k, most):
            if design.least_leading >= least_leading:
                return design
        most *= 4
    raise ValueError(f"expected p_i that some split of 64 bits reaches at k = {k}, got {least_leading}")


def longest_leading(k: int, most_tables: int) -> Design:
    """Return the design with the largest least p_i among those with at most `most_tables` tables."""
    if most_tables < 1:
        raise ValueError(f"expected at least one table, got {most_tables}")
    return designs(k, most_tables)[-1]

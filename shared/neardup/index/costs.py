"""Cost model of designs: memory, machines, messages and time, from constants measured on the current machine.

The time of a probe follows Sood & Loguinov 2011 §7: equation 9 for the exact search, with one read of a directory in
place of the binary search, and equation 19 for PSM.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import ceil, log2
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.index.plan.design import Design, designs
from neardup.index.plan.table import BITS
from neardup.index.psm.flip_model import FlipModel
from neardup.index.psm.search import Psm
from neardup.index.psm.simulated_weights import copies, fingerprints_of, pages
from neardup.index.slices.codecs import Codec, make_builder
from neardup.kernels.common.bits import popcount

_SAMPLE: Final = 1 << 18
_MESSAGES: Final = 2
"""Messages per visited slice: a probe and its result."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Times on this machine in nanoseconds: a random read, a comparison in a scan, a permutation of a key, a flip."""

    read_ns: float
    scan_ns: float
    permute_ns: float
    flip_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One design in the comparison. Bytes are per page, over all tables. Microseconds are time of one core."""

    search: str
    tables: int
    least_leading: int
    most_leading: int
    lookups: int
    candidates_per_probe: float
    bytes_per_page: float
    bytes_per_page_compressed: float
    shards: int
    shards_compressed: int
    machines: int
    machines_compressed: int
    messages_per_page: float
    microseconds_per_page: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def measure() -> Constants:
    """Measure the constants of this machine, in about a second."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, 1 << 23, dtype=np.uint64)
    places = rng.integers(0, words.size, 1 << 20)
    table = Design(3, (5,)).tables()[5]
    weights = pages(rng, 2000)
    model = FlipModel.fit(weights, copies(rng, weights))
    psm, fingerprints, levels = Psm(model, 24, 20), fingerprints_of(weights), model.levels_of(weights)
    return Constants(
        read_ns=_nanoseconds(lambda: _read(words, places), places.size),
        scan_ns=_nanoseconds(lambda: _scan(words, words[0]), words.size),
        permute_ns=_nanoseconds(lambda: table.keys_of(words[:_SAMPLE]), _SAMPLE),
        flip_ns=_nanoseconds(lambda: psm.lookups(fingerprints, levels), fingerprints.size * 20),
    )


def compare(
    page_count: float,
    *,
    k: int,
    memory_per_shard: int,
    memory_per_machine: int,
    constants: Constants,
    most_tables: int = 40,
) -> list[Option]:
    """Return exact designs with up to `most_tables` tables, then PSM, without those whose slices do not fit a shard."""
    d = log2(page_count)
    raw, packed = (_bytes_per_key(d, codec) for codec in (Codec.PLAIN, Codec.ELIAS_FANO))

    def option(search: str, leading: list[int], lookups: int, per_page: float, visited: float | None = None) -> Option:
        tables = len(leading)
        slices = [_slices(page_count * size, memory_per_shard, min(leading)) for size in (raw, packed)]
        machines = [ceil(tables * page_count * size / memory_per_machine) for size in (raw, packed)]
        return Option(
            search=search,
            tables=tables,
            least_leading=min(leading),
            most_leading=max(leading),
            lookups=lookups,
            candidates_per_probe=2 ** (d - min(leading)),
            bytes_per_page=tables * raw,
            bytes_per_page_compressed=tables * packed,
            shards=tables * slices[0],
            shards_compressed=tables * slices[1],
            machines=machines[0],
            machines_compressed=machines[1],
            messages_per_page=_MESSAGES * (tables if visited is None else visited),
            microseconds_per_page=per_page / 1000,
        )

    found = []
    for design in designs(k, most_tables)[1:]:  # the first design compares all pairs, in a table without leading bits
        leading = [table.leading for table in design.tables()]
        if _slices(page_count * packed, memory_per_shard, min(leading)):
            scan = sum(2 ** max(d - p, 0) for p in leading) * constants.scan_ns
            found.append(option("exact", leading, len(leading),
                                len(leading) * (constants.permute_ns + 2 * constants.read_ns) + scan))  # fmt: skip
    header = max(8, min(40, int(d) - 1))
    psm, visits = _psm(k, header, _slice_bits(page_count * raw, memory_per_shard))
    each = constants.flip_ns + 2 * constants.read_ns + 2 ** max(d - header, 0) * constants.scan_ns
    found.append(option("PSM", [header], psm.attempts + 1, (psm.attempts + 1) * each, visits))
    return [each for each in found if each.shards_compressed]


def _psm(k: int, header: int, slice_bits: int) -> tuple[Psm, float]:
    """Return PSM with the k(t) of 95% recall on simulated weights, and the mean number of slices that a page visits."""
    rng = np.random.default_rng(1)
    weights = pages(rng, 4000)
    model = FlipModel.fit(weights, copies(rng, weights))
    changed = copies(rng, weights)
    fingerprints, levels = fingerprints_of(changed), model.levels_of(changed)
    attempts = model.attempts_for(0.95, fingerprints, levels, fingerprints_of(weights), header=header, k=k)
    psm = Psm(model, header, attempts, k)
    keys, _ = psm.lookups(fingerprints[:500], levels[:500])
    visits = [np.unique(row >> np.uint64(BITS - slice_bits)).size if slice_bits else 1 for row in keys]
    return psm, float(np.mean(visits))


def _bytes_per_key(d: float, codec: Codec) -> float:
    """Measure the bytes per key of a codec on a sample that is as dense as 2^d keys."""
    shared = max(0, round(d) - int(log2(_SAMPLE)))
    rng = np.random.default_rng(2)
    keys = np.unique(rng.integers(0, 2**64, _SAMPLE, dtype=np.uint64) >> np.uint64(shared))
    builder = make_builder(codec, keys, skip=shared, leading=shared, epoch=0)
    while not builder.step(keys.size):
        pass
    return builder.run().nbytes / keys.size


def _slice_bits(table_bytes: float, memory: int) -> int:
    return max(0, ceil(log2(table_bytes / memory)))


def _slices(table_bytes: float, memory: int, leading: int) -> int:
    """Return the number of slices of a table so that each fits, or 0 if that takes more than the leading bits."""
    bits = _slice_bits(table_bytes, memory)
    return 1 << bits if bits <= leading else 0


def _nanoseconds(work: Callable[[], object], count: int) -> float:
    work()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1e9 * min(times) / count


@njit(nogil=True, cache=True)
def _read(words: NDArray[np.uint64], places: NDArray[np.int64]) -> np.uint64:
    total = np.uint64(0)
    for place in places:
        total += words[place]
    return total


@njit(nogil=True, cache=True)
def _scan(words: NDArray[np.uint64], query: np.uint64) -> int:
    count = 0
    for word in words:
        if popcount(word ^ query) <= np.uint64(3):
            count += 1
    return count

"""Benchmark of the index on one core: exact search against memory and FAISS, PSM, growth, codecs, batch, buckets.

It uses random fingerprints and simulated weights. A quarter of the queries are near-duplicates of stored fingerprints.
Each figure is the best of several rounds.
"""

import time
from collections.abc import Callable
from functools import partial
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.evaluation.svg_chart import Series, svg_of
from neardup.index.batch.search import BatchSearch
from neardup.index.buckets.table import BucketTable
from neardup.index.lsm.lookup import Found, Lookup
from neardup.index.plan.design import Design, longest_leading
from neardup.index.plan.table import Table
from neardup.index.psm.flip_model import FlipModel
from neardup.index.psm.search import Psm
from neardup.index.psm.simulated_weights import copies, fingerprints_of, pages
from neardup.index.slices.codecs import Codec, make_builder
from neardup.index.slices.runs import SortedRun
from neardup.index.slices.slice import Slice
from neardup.kernels.index.huffman import code_lengths, count_positions
from neardup.runtime.process_tuning import tune_process
from tests.bench.result import Result

ROUNDS = 5
QUERIES = 1 << 18
BATCH = 1 << 16
"""Number of queries whose keys are computed together, small enough for the cache and for reused memory."""
RECALL = 0.955
"""Recall on the pairs from which the flips are chosen. On other pairs it must be at least .95."""


def run(*, full: bool, plot: Path | None = None) -> list[Result]:
    """Run the benchmark with 6M fingerprints, or 60M if `full`. `plot` is the SVG file for the chart of the growth."""
    tune_process()  # like a shard
    size = 60_000_000 if full else 6_000_000
    reads, exact, results = _exact(size)
    results += _faiss(6_000_000)
    results += _psm(size, reads, exact)
    results += _grow(10_000_000 if full else 2_000_000)
    results += _compression(26 if full else 22)
    results += _batch(60_000_000 if full else 32_000_000)
    results += _buckets(10_000_000 if full else 2_000_000)
    results += _small_batches()
    results += _growth([20, 22, 24, 26] if full else [18, 20, 22], plot)
    return results


def _best(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Return the seconds of the fastest round. The first round compiles and warms up, and is not measured."""
    return _best_in_turn(work, rounds=rounds)[0]


def _best_in_turn(*works: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """Return the seconds of the fastest round of each. They take turns because the speed of memory varies."""
    times: list[list[float]] = []
    for _ in range(1 + rounds):
        times.append([])
        for work in works:
            began = time.perf_counter()
            work()
            times[-1].append(time.perf_counter() - began)
    return [min(each) for each in zip(*times[1:], strict=True)]


@njit(nogil=True)
def _read_all(array: NDArray[np.uint64], places: NDArray[np.int64]) -> np.uint64:
    total = np.uint64(0)
    for place in places:
        total += array[place]
    return total


def _random(seed: int, size: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)


def _queries(stored: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """Return queries of which a quarter are stored fingerprints with up to three flipped bits."""
    rng = np.random.default_rng(9)
    made = _random(10, size)
    near = stored[rng.integers(0, stored.size, size // 4)]
    for _ in range(3):
        near = near ^ (np.uint64(1) << rng.integers(0, 64, near.size, dtype=np.uint64))
    made[::4] = near
    return made


class _Tables:
    """Tables of the exact search as a shard has them when all merges are done."""

    def __init__(self, stored: NDArray[np.uint64], tables: int, codec: Codec = Codec.PLAIN) -> None:
        self.tables = longest_leading(3, tables).tables()
        self.runs = [_run(np.sort(table.keys_of(stored)), table.leading, codec) for table in self.tables]

    def find(self, queries: NDArray[np.uint64]) -> int:
        limits = np.full(BATCH, 3, np.uint64)
        found, count = Found(1 << 20), 0
        for table, run in zip(self.tables, self.runs, strict=True):
            for start in range(0, queries.size, BATCH):
                some = queries[start : start + BATCH]
                found.clear()
                run.probe(Lookup(table.keys_of(some), limits[: some.size], table.leading), found)
                count += found.count
        return count

    def pairs(self, queries: NDArray[np.uint64]) -> set[tuple[int, int]]:
        pairs: set[tuple[int, int]] = set()
        limits = np.full(queries.size, 3, np.uint64)
        for table, run in zip(self.tables, self.runs, strict=True):
            found = Found()
            run.probe(Lookup(table.keys_of(queries), limits, table.leading), found)
            keys = table.fingerprints_of(found.key[: found.count])
            pairs |= set(zip(found.query[: found.count].tolist(), keys.tolist(), strict=True))
        return pairs


def _run(keys: NDArray[np.uint64], leading: int, codec: Codec, skip: int = 0) -> SortedRun:
    builder = make_builder(codec, keys, skip=skip, leading=leading, epoch=0)
    while not builder.step(1 << 62):
        pass
    return builder.run()


def _against(reads: float, size: int, of_query: float) -> str:
    return f"{reads:,.0f} random reads/s on {size:,} words, {of_query:.3g} per query"


def _exact(size: int) -> tuple[float, float, list[Result]]:
    """Return the random reads per second of the memory, the queries per second, and all results."""
    stored = _random(1, size)
    queries = _queries(stored, QUERIES)
    tables = _Tables(stored, 10)
    places = np.random.default_rng(2).integers(0, size, 1 << 21)
    reading, finding = _best_in_turn(lambda: _read_all(stored, places), lambda: tables.find(queries))
    reads, rate = places.size / reading, queries.size / finding
    nbytes = sum(run.nbytes for run in tables.runs) / (10 * 8 * size)
    return (
        reads,
        rate,
        [
            Result("exact_vs_random_reads", rate * 20 / reads, "ratio", _against(reads, size, 20), goal=0.6),
            Result("exact_qps", rate, "queries/s", f"{size:,} fingerprints, T = 10, k = 3"),
            Result("exact_table_bytes_ratio", nbytes, "ratio", "8 bytes per key"),
        ],
    )


def _faiss(size: int) -> list[Result]:
    try:
        import faiss
    except ImportError:
        about = "nothing: faiss is not installed; `make bench` installs it"
        return [Result("exact_vs_faiss", 0.0, "not measured", about)]
    faiss.omp_set_num_threads(1)
    stored = _random(3, size)
    queries = _queries(stored, QUERIES)
    few = queries[:2000]
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    index.add(stored.view(np.uint8).reshape(-1, 8))
    as_bytes = few.view(np.uint8).reshape(-1, 8)
    theirs = few.size / _best(lambda: index.range_search(as_bytes, 4), rounds=2)
    bounds, _, labels = index.range_search(as_bytes, 4)
    numbers = np.repeat(np.arange(few.size), np.diff(bounds.astype(np.int64)))
    their_pairs = set(zip(numbers.tolist(), stored[labels].tolist(), strict=True))
    tables = _Tables(stored, 10)
    same = tables.pairs(few) == their_pairs
    ours = queries.size / _best(lambda: tables.find(queries))
    about = f"IndexBinaryMultiHash(64, 4, 16), {theirs:,.0f} queries/s, {size:,} stored, answers "
    about += "the same" if same else "DIFFER"
    return [Result("exact_vs_faiss", ours / theirs if same else 0.0, "ratio", about, goal=200)]


def _psm(size: int, reads: float, exact: float) -> list[Result]:
    rng = np.random.default_rng(4)
    header = min(24, size.bit_length() - 2)
    sample = pages(rng, 20_000)
    model = FlipModel.fit(sample, copies(rng, sample))
    tried = copies(rng, sample)
    asked, levels, others = fingerprints_of(tried), model.levels_of(tried), fingerprints_of(sample)
    attempts = {
        first: model.attempts_for(RECALL, asked, levels, others, header=header, k=3, first=first)
        for first in (False, True)
    }
    near = pages(rng, QUERIES + QUERIES // 4)
    changed = copies(rng, near)
    kept_pairs = np.flatnonzero(np.bitwise_count(fingerprints_of(near) ^ fingerprints_of(changed)) <= 3)[: QUERIES // 4]
    near, changed = near[kept_pairs], changed[kept_pairs]
    stored = _random(5, size)
    stored[: near.shape[0]] = fingerprints_of(near)
    kept = Slice(Table.plain(header))
    kept.insert(stored)
    weights = pages(rng, QUERIES)
    weights[::4][: changed.shape[0]] = changed
    queries, query_levels = fingerprints_of(weights), model.levels_of(weights)
    everything = Psm(model, header, attempts[False])
    first_only = Psm(model, header, attempts[True])
    all_rate = queries.size / _best(lambda: everything.find_all(kept, queries, query_levels))
    first_rate = queries.size / _best(lambda: first_only.find_first(kept, queries, query_levels))
    wanted = 4 * np.arange(near.shape[0])
    recall = [
        float(np.isin(wanted, found.query).mean())
        for found in (
            everything.find_all(kept, queries, query_levels),
            first_only.find_first(kept, queries, query_levels),
        )
    ]
    # Each lookup reads a directory and a table. First mode makes one lookup, and the others only after a miss.
    missed = 1 - np.unique(kept.probe(queries, 3).query).size / queries.size
    all_reads, first_reads = 2 * (1 + attempts[False]), 2 * (1 + attempts[True] * missed)
    about = f"{size:,} fingerprints, t = {header}"
    against = f"exact search, {exact:,.0f} queries/s"
    return [
        Result("psm_all_vs_exact", all_rate / exact, "ratio", against),
        Result("psm_first_vs_exact", first_rate / exact, "ratio", against),
        Result("psm_all_vs_random_reads", all_rate * all_reads / reads, "ratio", _against(reads, size, all_reads)),
        Result(
            "psm_first_vs_random_reads", first_rate * first_reads / reads, "ratio", _against(reads, size, first_reads)
        ),
        Result("psm_all_qps", all_rate, "queries/s", f"{about}, k(t) = {attempts[False]}", goal=765_000),
        Result("psm_first_qps", first_rate, "queries/s", f"{about}, k(t) = {attempts[True]}", goal=1_600_000),
        Result("psm_tables", kept.nbytes / (8 * size), "tables", "8 bytes per key", 1.25, smaller_is_better=True),
        Result("psm_all_recall", recall[0], "ratio", "pairs within 3 bits", goal=0.95),
        Result("psm_first_recall", recall[1], "ratio", "pairs within 3 bits", goal=0.95),
    ]


def _grow(size: int) -> list[Result]:
    stored = _random(6, size)
    stored[1::4] = stored[::4][: stored[1::4].size] ^ np.uint64(1 << 40 | 1 << 7)
    slices = [Slice(table) for table in Design(3, (5,)).tables()]
    warm = Slice(slices[0].table)
    warm.probe_and_insert(stored[:20_000], 3)
    batch, slowest = 4096, 0.0
    began = time.perf_counter()
    for start in range(0, size, batch):
        before = time.perf_counter()
        for each in slices:
            each.probe_and_insert(each.table.keys_of(stored[start : start + batch]), 3)
        slowest = max(slowest, time.perf_counter() - before)
    rate = size / (time.perf_counter() - began)
    return [
        Result("grow_pages_per_s", rate, "pages/s", f"from empty to {size:,}, T = 10, batches of 4096", goal=300_000),
        Result("grow_slowest_batch_ms", 1000 * slowest, "ms", f"{1000 * batch / rate:.0f} ms on average"),
    ]


def _compression(bits: int) -> list[Result]:
    results = []
    queries = _random(8, 1 << 16)
    # The limits are for 2^26 keys; for another n the information-theoretic limit moves by the difference in bits.
    shift = (26 - bits) / 64
    for dense, name in ((0, ""), (8, "_dense")):
        shared = np.uint64(0xA5 << 56) if dense else np.uint64(0)
        keys = np.unique((_random(7, 1 << bits) >> np.uint64(dense)) | shared)
        asked = (queries >> np.uint64(dense)) | shared
        leading = min(64, bits + dense)
        limit = (64 - dense - log2(keys.size) + 1.4427) / 64
        fixed = (6 + float(np.mean(_positions(keys)))) / 64
        rates = {}
        for codec in Codec:
            made = _run(keys, leading, codec, dense)
            lookup = Lookup(asked, np.full(asked.size, 3, np.uint64), leading)
            rates[codec] = asked.size / _best(partial(made.probe, lookup, Found(1 << 20)), 3)
            ratio = made.nbytes / (8 * keys.size)
            about = f"raw; 2^{bits + dense} for a full range, {keys.size:,} keys; limit {limit:.3f}; "
            about += f"{rates[codec]:,.0f} probes/s, {rates[codec] / rates[Codec.PLAIN]:.2f} of plain"
            if codec is Codec.ELIAS_FANO:
                goal = (0.51 if dense else 0.63) + shift
                results.append(Result(f"compressed_bytes_ratio{name}", ratio, "ratio", about, goal, True))
            elif codec is Codec.HUFFMAN:
                goal = (0.535 if dense else 0.66) + shift
                counts = np.zeros(64, np.int64)
                count_positions(keys, 0, keys.size, counts)
                mean = float((counts * code_lengths(counts)).sum() / counts.sum())
                about += f"; {mean:.2f} bits per code, a fixed 6-bit code would give {fixed:.3f} before blocks"
                results.append(Result(f"huffman_bytes_ratio{name}", ratio, "ratio", about, goal, True))
    return results


def _positions(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    return np.floor(np.log2((keys[1:1_000_000] ^ keys[: 1_000_000 - 1][: keys[1:1_000_000].size]).astype(np.float64)))


def _batch(size: int) -> list[Result]:
    stored = _random(11, size)
    search = BatchSearch(_queries(stored, 1_000_000), Design(3, (5,)))
    rate = size / _best(lambda: search.scan([stored]), rounds=3)
    about = f"1,000,000 queries, {size:,} fingerprints in memory, one core"
    both = size / _best(lambda: search.scan([stored], 2), rounds=3)
    return [
        Result("batch_scanned_per_s", rate, "fingerprints/s", about, goal=20_000_000),
        Result("batch_two_threads", both / rate, "ratio", "one thread"),
    ]


def _buckets(size: int) -> list[Result]:
    """Insert pairs of which a quarter share the bucket of an earlier pair."""
    rng = np.random.default_rng(13)
    keys, fingerprints = _random(14, size), _random(15, size)
    keys[1::4] = keys[rng.integers(0, size, keys[1::4].size)]
    results = []
    for batch, some in ((8192, size), (500, size // 4), (50, size // 40)):
        BucketTable().probe_and_insert(keys[:20_000], fingerprints[:20_000])
        table, slowest = BucketTable(), 0.0
        began = time.perf_counter()
        for start in range(0, some, batch):
            before = time.perf_counter()
            table.probe_and_insert(keys[start : start + batch], fingerprints[start : start + batch])
            slowest = max(slowest, time.perf_counter() - before)
        rate = some / (time.perf_counter() - began)
        about = f"from empty to {some:,}, {1e6 * batch / rate:,.0f} µs per batch, slowest {1e6 * slowest:,.0f}"
        goal = 1_000_000 if batch == 8192 else None
        results.append(Result(f"buckets_{batch}_pairs_per_s", rate, "pairs/s", about, goal))
    return results


def _small_batches() -> list[Result]:
    """Measure the cost of a call with little work, because the stream sends small batches."""
    kept = Slice(Table.plain(25))
    for start in range(0, 1 << 20, 4096):
        kept.probe_and_insert(_random(start, 4096), 3)
    results = []
    for batch in (1, 50, 500):
        times = []
        for number in range(400):
            keys = _random(number * 1000 + batch, batch)
            began = time.perf_counter()
            kept.probe_and_insert(keys, 3)
            times.append(time.perf_counter() - began)
        about = f"median of 400 calls of probe_and_insert on {len(kept):,} keys"
        results.append(Result(f"slice_batch_{batch}_us", 1e6 * float(np.median(times)), "µs", about))
    return results


def _growth(powers: list[int], plot: Path | None) -> list[Result]:
    """Measure microseconds per query by table size, with a bar for each size that shows the trend in the terminal."""
    results, points = [], []
    for power in powers:
        stored = _random(12, 1 << power)
        tables = _Tables(stored, 10)
        queries = _queries(stored, 1 << 16)
        micros = 1e6 * _best(partial(tables.find, queries), 3) / queries.size
        results.append(Result(f"growth_2^{power}_us", micros, "µs/query", "#" * max(1, round(40 * micros))))
        points.append((power, micros))
    if plot is not None:
        drawn = svg_of(
            [Series("", points)],
            title="Exact search, T = 10, k = 3",
            across="log2 of the fingerprints",
            up="µs per query",
            values=True,
        )
        plot.write_text(drawn)
    return results

"""Pairs of rows that share keys, with the number of shared keys, computed with `counted_runs`."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from neardup.kernels.offline.postings import PARTITIONS, PairRules, TakingPart, expand
from neardup.offline.pairs.counted_runs import CountedRun, RunBuffer, Score, merge_runs
from neardup.offline.pairs.pair_files import pair_files
from neardup.offline.pairs.pair_source import IgnoredKeys, Pairs
from neardup.offline.pairs.postings import Postings
from neardup.util.parallel import CORES


def pairs_with_shared_keys(
    postings: Postings,
    participation: TakingPart,
    first_new: int,
    *,
    common: int,
    memory_bytes: int,
    directory: Path,
    score: Score,
    progress: Callable[[int, int], None],
) -> tuple[Pairs, IgnoredKeys]:
    """Return the pairs of rows that share a key, include a row from `first_new` on, and are accepted by the score.

    `participation` limits the keys of each row by their rarity (`kernels.offline.postings.rarity`). Keys of more than
    `common` participating rows are ignored. Memory is bounded by `memory_bytes` and by `common` words per core.
    """
    row_bits = participation.reach.size.bit_length()
    rules = PairRules(first_new, common, row_bits)
    spilled = directory / "spilled"
    shutil.rmtree(spilled, ignore_errors=True)
    ignored = np.zeros((CORES, 2), np.int64)

    def collect(share: int) -> list[CountedRun]:
        """Count the pairs of the partitions `share`, `share` + CORES, and so on."""
        buffer = RunBuffer(memory_bytes // CORES, common, row_bits, spilled / str(share))
        for number in range(share, PARTITIONS, CORES):
            words, at, done = postings.partition(number), 0, 0
            while at < words.size:
                at, done, buffer.filled = expand(
                    words,
                    at,
                    done,
                    participation,
                    rules,
                    buffer.pairs,
                    buffer.filled,
                    ignored[share],
                )
                if at < words.size:
                    buffer.cut()
        return buffer.finish()

    with ThreadPoolExecutor(CORES) as pool, pair_files(directory) as found:
        runs: list[CountedRun] = []
        for done, some in enumerate(pool.map(collect, range(CORES))):
            runs += some
            progress(done + 1, CORES + 1)
        merge_runs(runs, row_bits, score, memory_bytes, pool, found)
        pairs = found.mapped()
    shutil.rmtree(spilled, ignore_errors=True)
    progress(CORES + 1, CORES + 1)
    common_keys, common_postings = ignored.sum(axis=0).tolist()
    return pairs, IgnoredKeys(common_keys, common_postings)

"""Edges and containments from the pairs of all sources, computed with the kernels of the local engine."""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Final

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from neardup.kernels.offline.sketch_keys import SampledRows, sample_sizes, score_samples, score_spots, spot_sizes
from neardup.kernels.offline.verifying import NEVER, likenesses
from neardup.offline.options import Options
from neardup.offline.pairs.sources import MARGIN
from neardup.offline.spark.sketches import words_of
from neardup.signatures.packed_sketch import LEAST_SAMPLED

_LIKENESS: Final = ("resemblance", "a_in_b", "b_in_a")

_Batches = Iterable[pyarrow.RecordBatch]
_Score = Callable[[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32]], NDArray[np.float32]]
"""(words, starts, pairs as a << 32 | b, shared keys of each pair) -> score of each pair, negative if rejected."""


def merge_sources(found: Mapping[str, DataFrame]) -> DataFrame:
    """Return (a, b, sources, shared): every pair once. Bit i of `sources` is set if source i found the pair.

    `shared` is an upper bound for the number of shared sampled shingles if the shingle source found the pair, else 0.
    """
    marked = [
        pairs.select("a", "b", F.lit(1 << bit).cast("long").alias("bit"), _shared_shingles(name).alias("shared"))
        for bit, (name, pairs) in enumerate(found.items())
    ]
    every = reduce(DataFrame.unionByName, marked)
    return every.groupBy("a", "b").agg(F.bit_or("bit").alias("sources"), F.max("shared").alias("shared"))


def _shared_shingles(source: str) -> Column:
    return F.col("shared") if source == "shingles" else F.lit(0).cast("long")


def found_by(bit: int) -> Column:
    """Return a column that is true if the source with this bit found the pair."""
    return F.col("sources").bitwiseAND(F.lit(1 << bit)) != 0


def verify_pairs(pairs: DataFrame, sketches: DataFrame, options: Options) -> DataFrame:
    """Return (a, b, sources, edge, resemblance, a_in_b, b_in_a) of the pairs that at least one source accepts.

    `sources` has only the accepting sources. A pair is an edge if its resemblance by MIPs reaches the threshold, or if
    the spot source accepts it. Containment is null for edges and below the threshold.
    """
    columns = "a long, b long, sources long, edge boolean, resemblance float, a_in_b float, b_in_a float"
    return _with_sketches(pairs, sketches).mapInArrow(_verifying(options), columns)


def compare_pairs(pairs: DataFrame, sketches: DataFrame) -> DataFrame:
    """Return (a, b, resemblance, a_in_b, b_in_a) of pairs. Containment is null where the samples are too small."""
    return _with_sketches(pairs, sketches).mapInArrow(
        _comparing, "a long, b long, resemblance float, a_in_b float, b_in_a float"
    )


def _with_sketches(pairs: DataFrame, sketches: DataFrame) -> DataFrame:
    for side in ("a", "b"):
        pairs = pairs.join(sketches.select(F.col("row").alias(side), F.col("sketch").alias(f"{side}_sketch")), side)
    return pairs


def _comparing(batches: _Batches) -> _Batches:
    for batch in batches:
        resemblance, *shares = likenesses(*_places(batch), LEAST_SAMPLED, NEVER).T
        columns = [*(batch.column(side) for side in ("a", "b")), resemblance.astype(np.float32)]
        columns += [pyarrow.array(share.astype(np.float32), mask=share < 0) for share in shares]
        yield pyarrow.RecordBatch.from_arrays(columns, ["a", "b", *_LIKENESS])


def _verifying(options: Options) -> Callable[[_Batches], _Batches]:
    thresholds = options.thresholds
    bits = {name: 1 << bit for bit, name in enumerate(options.pair_sources)}
    scores = {bits[name]: score for name, score in _scores(options).items() if name in bits}
    by_spots = bits.get("spots", 0)

    def verify(batches: _Batches) -> _Batches:
        for batch in batches:
            a, b, words, starts = _places(batch)
            sources = batch.column("sources").to_numpy().copy()
            shared = batch.column("shared").to_numpy().astype(np.uint32)
            pairs = a.astype(np.uint64) << np.uint64(32) | b
            for bit, score in scores.items():
                selected = np.flatnonzero(sources & bit)
                unwanted = score(words, starts, pairs[selected], shared[selected]) < 0
                sources[selected[unwanted]] ^= bit
            resemblance, *shares = likenesses(a, b, words, starts, LEAST_SAMPLED, thresholds.resemblance).T
            edge = (resemblance >= thresholds.resemblance) | (sources & by_spots > 0)
            columns = [batch.column("a"), batch.column("b"), sources, edge, resemblance.astype(np.float32)]
            for share in shares:
                held = ~edge & (share >= thresholds.containment) & (share >= 0)
                columns.append(pyarrow.array(share.astype(np.float32), mask=~held))
            verified = pyarrow.RecordBatch.from_arrays(columns, ["a", "b", "sources", "edge", *_LIKENESS])
            yield verified.filter(pyarrow.array(sources > 0))

    return verify


def _scores(options: Options) -> dict[str, _Score]:
    """Return the scores of the sources that reject pairs."""
    least, least_spots = (
        (options.thresholds.resemblance - MARGIN, options.thresholds.containment - MARGIN),
        options.spot_resemblance,
    )
    return {
        # `shared` is an upper bound that includes ignored keys, so there are no keys beyond it.
        "shingles": lambda words, starts, pairs, shared: score_samples(
            SampledRows(words, starts, *sample_sizes(words, starts)),
            pairs,
            shared,
            np.zeros((starts.size - 1, 1), np.uint16),
            *least,
            LEAST_SAMPLED,
        ),
        "spots": lambda words, starts, pairs, shared: score_spots(
            words, starts, spot_sizes(words, starts), pairs, least_spots
        ),
    }


def _places(
    batch: pyarrow.RecordBatch,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int64]]:
    """Return (a, b, words, starts): pairs as positions in one array of sketches, in which all `a` precede all `b`."""
    words, starts = words_of(batch.column("a_sketch"))
    more, after = words_of(batch.column("b_sketch"))
    a = np.arange(len(batch), dtype=np.uint32)
    return a, a + np.uint32(len(batch)), np.concatenate([words, more]), np.concatenate([starts, starts[-1] + after[1:]])

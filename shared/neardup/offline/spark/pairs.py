"""The pair sources as DataFrame operations: postings of keys, joined with themselves.

Every source gives (a, b, shared): rows of kept documents, a before b, each pair once, and how many keys both have. A
key that more documents have than is common to ignore is counted by partial sums and left out before anything is joined,
so no task meets more of one key than that. What a pair is worth is for `spark_edges` to say.

Keys are those of the engine on one machine, and as much is kept of each: both call the same keys common, and bring the
same documents together.
"""

from collections.abc import Callable, Iterable
from math import log2
from typing import Final, NamedTuple

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from neardup.index.plan.design import Design, fewest_tables
from neardup.index.plan.table import BITS
from neardup.kernels.offline.postings import KEPT
from neardup.kernels.offline.sketch_keys import band_keys, sample_keys, spot_keys, super_keys
from neardup.offline.options import Options
from neardup.offline.pairs.hamming_sources import HEADER
from neardup.offline.pairs.sources import MARGIN
from neardup.offline.spark.session import Scratch
from neardup.offline.spark.sketches import words_of
from neardup.signatures.packed_sketch import LEAST_SAMPLED

_MOST_LEADING: Final = 24
"""Bits that a table's keys share: with more of them, tables get more faster than what shares them gets less."""
_ROUNDING: Final = 1e-9

_Batches = Iterable[pyarrow.RecordBatch]
_Keys = Callable[
    [NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.uint64], NDArray[np.int64]]
]
"""(words, starts, rows) of sketches -> the keys of each, one row after the other, and how many each has."""


class SourcePairs(NamedTuple):
    """What a source found, and how many keys it left out."""

    pairs: DataFrame
    common_keys: int


def source_pairs(name: str, documents: DataFrame, options: Options, scratch: Scratch) -> SourcePairs:
    """The pairs that the source of this name finds among documents: (row, fingerprint, sketch)."""
    bands, super_size = options.bands, options.super_size
    keys: dict[str, _Keys] = {
        "shingles": sample_keys,
        "supers": lambda words, starts, rows: super_keys(words, starts, rows, super_size),
        "bands": lambda words, starts, rows: band_keys(words, starts, rows, bands.k, bands.s),
    }
    if name in keys:
        rare = _rare(_postings(documents, keys[name], scratch), "key", options.common, scratch)
        pairs = _pairs_within(rare.postings, "key", "times").groupBy("a", "b").agg(F.sum("times").alias("shared"))
        return SourcePairs(_promising(pairs, rare, documents, options) if name == "shingles" else pairs, rare.keys)
    if name == "spots":
        return _sharing_rare_spots(documents, options, scratch)
    return _near_fingerprints(documents, options, _FINGERPRINTS[name], scratch)


# Keys that must be equal


class _Rare(NamedTuple):
    """The postings without those of common keys; these; and how many such keys there are."""

    postings: DataFrame
    left_out: DataFrame
    keys: int


def _postings(documents: DataFrame, keys_of: _Keys, scratch: Scratch) -> DataFrame:
    """(key, row, times), each key of a row once; `times`: how many of the row's keys look like that, mostly 1."""

    def postings_of(batches: _Batches) -> _Batches:
        for batch in batches:
            keys, sizes = keys_of(*words_of(batch.column("sketch")), np.arange(len(batch)))
            rows = np.repeat(np.arange(len(batch)), sizes)
            keys &= KEPT
            order = np.lexsort((keys, rows))
            keys, rows = keys[order], rows[order]
            first = np.flatnonzero(np.diff(rows, prepend=-1).astype(np.bool_) | (keys != np.roll(keys, 1)))
            times = np.diff(first, append=keys.size)
            numbers = batch.column("row").to_numpy()[rows[first]]
            yield pyarrow.RecordBatch.from_arrays([keys[first].view(np.int64), numbers, times], ["key", "row", "times"])

    postings = documents.select("row", "sketch").mapInArrow(postings_of, "key long, row long, times long")
    return scratch.keep(postings, "postings")


def _promising(pairs: DataFrame, rare: _Rare, documents: DataFrame, options: Options) -> DataFrame:
    """Without most pairs that share a template and little else: `score_samples` would drop them, too, but only after
    their sketches were sent to it. How much the coarser modulus leaves of the finer sample is not known here.

    `shared` becomes how many shingles both have at most: of the common ones, which were not counted, as many as either.
    """
    sizes = documents.select("row", "sketch").mapInArrow(_sample_sizes, "row long, exponent long, size long")
    common = rare.left_out.groupBy("row").agg(F.sum("times").alias("common"))
    sizes = sizes.join(common, "row", "left").fillna(0, ["common"])
    for side in ("a", "b"):
        names = {name: f"{name}_{side}" for name in ("exponent", "size", "common")}
        pairs = pairs.join(sizes.withColumnsRenamed({"row": side, **names}), side)
    pairs = pairs.withColumn("shared", F.col("shared") + F.least("common_a", "common_b"))
    resemblance, containment = (getattr(options.thresholds, name) - MARGIN for name in ("resemblance", "containment"))
    smaller, larger = F.least("size_a", "size_b"), F.greatest("size_a", "size_b")
    at_one_modulus = F.least(resemblance * larger, containment * F.greatest(smaller, F.lit(LEAST_SAMPLED)))
    coarser = F.when(F.col("exponent_a") > F.col("exponent_b"), F.col("size_a")).otherwise(F.col("size_b"))
    at_two = F.least(resemblance * coarser, F.lit(containment * LEAST_SAMPLED))
    least = F.when(F.col("exponent_a") == F.col("exponent_b"), at_one_modulus).otherwise(at_two)
    return pairs.where(F.col("shared") >= least - _ROUNDING).select("a", "b", "shared")


def _sample_sizes(batches: _Batches) -> _Batches:
    for batch in batches:
        words, starts = words_of(batch.column("sketch"))
        headers = words[starts[:-1]].view(np.int64)
        yield pyarrow.RecordBatch.from_arrays(
            [batch.column("row"), headers & 0xFF, headers >> 32], ["row", "exponent", "size"]
        )


def _rare(postings: DataFrame, key: str, common: int, scratch: Scratch) -> _Rare:
    """Common: that more than so many rows have."""
    counts = postings.groupBy(key).count().where(F.col("count") > common)
    too_common = scratch.keep(counts.select(key), "common")
    found = too_common.count()
    if not found:
        return _Rare(postings, postings.limit(0), 0)
    return _Rare(postings.join(too_common, key, "left_anti"), postings.join(too_common, key, "left_semi"), found)


def _pairs_within(postings: DataFrame, key: str, *of_a: str) -> DataFrame:
    """(a, b) for every two rows with the same key, as often as they have one; and these columns of a's posting."""
    left = postings.select(key, F.col("row").alias("a"), *of_a)
    right = postings.select(key, F.col("row").alias("b"))
    return left.join(right, key).where("a < b").select("a", "b", *of_a)


# Fingerprints that may differ in k bits

_FINGERPRINTS: Final = {
    "hamming": "true",
    # What the probabilistic search of the engine on one machine finds: of the header at most one bit differs.
    "psm": f"bit_count(shiftrightunsigned(x ^ y, {BITS - HEADER})) <= 1",
}


def _near_fingerprints(documents: DataFrame, options: Options, wanted: str, scratch: Scratch) -> SourcePairs:
    """Permuted tables (Manku 2007 §3.1): what shares the leading bits of one is looked at."""
    named, _, common_keys = _rare(documents.select("fingerprint", "row"), "fingerprint", options.common, scratch)
    distinct = scratch.keep(named.select("fingerprint").distinct(), "fingerprints")
    table = distinct.mapInArrow(
        _leading_bits(_design(options.hamming, distinct.count())), "table long, key long, fingerprint long"
    )
    left, right = (table.withColumnRenamed("fingerprint", side) for side in ("x", "y"))
    met = left.join(right, ["table", "key"]).where(f"x < y and bit_count(x ^ y) <= {options.hamming} and {wanted}")
    met = met.select("x", "y").distinct()
    for side, row in (("x", "p"), ("y", "q")):
        met = met.join(named.select(F.col("fingerprint").alias(side), F.col("row").alias(row)), side)
    apart = met.select(F.least("p", "q").alias("a"), F.greatest("p", "q").alias("b"))
    return SourcePairs(_once(apart.unionByName(_pairs_within(named, "fingerprint"))), common_keys)


def _design(k: int, fingerprints: int) -> Design:
    """With so many leading bits that by chance about one fingerprint has each value of them."""
    return fewest_tables(k, min(_MOST_LEADING, int(log2(max(2, fingerprints)))))


def _leading_bits(design: Design) -> Callable[[_Batches], _Batches]:
    def keys(batches: _Batches) -> _Batches:
        tables = design.tables()
        for batch in batches:
            fingerprints = batch.column("fingerprint").to_numpy().astype(np.uint64)
            for number, table in enumerate(tables):
                leading = (table.keys_of(fingerprints) & table.mask).view(np.int64)
                columns = [np.full(leading.size, number), leading, batch.column("fingerprint")]
                yield pyarrow.RecordBatch.from_arrays(columns, ["table", "key", "fingerprint"])

    return keys


# Bags of spots that may resemble


def _sharing_rare_spots(documents: DataFrame, options: Options, scratch: Scratch) -> SourcePairs:
    """With the spots of each bag in one order, the rarest first, two bags that resemble by the threshold share one
    before the place from which on less than the threshold's part of either is left: only those are looked at.

    A spot's second occurrence is a key of its own, as in a set of numbered shingles (Broder 1997, "On the resemblance
    and containment of documents"): few documents may have it where many have the first.
    """
    spots = _postings(documents, spot_keys, scratch)
    frequency = scratch.keep(spots.groupBy("key").agg(F.count("*").alias("documents")), "frequency")
    bag = Window.partitionBy("row")
    left = F.sum("times").over(bag.orderBy(F.desc("documents"), F.desc("key")))
    ordered = spots.join(frequency, "key").withColumn("left", left).withColumn("size", F.sum("times").over(bag))
    before = F.col("left") >= F.lit(options.spot_resemblance) * F.col("size") - _ROUNDING
    rare = ordered.where(before & (F.col("documents") <= options.common))
    common_keys = frequency.where(F.col("documents") > options.common).count()
    return SourcePairs(_once(_pairs_within(rare, "key").distinct()), common_keys)


def _once(pairs: DataFrame) -> DataFrame:
    return pairs.select("a", "b", F.lit(1).cast("long").alias("shared"))

"""Pair sources as DataFrame operations: postings of keys, joined with themselves.

Every source gives (a, b, shared): rows of kept documents with a < b, each pair once, and the number of shared keys.
Common keys, which more documents have than the limit allows, are counted by partial sums and removed before any join,
so no task receives more postings of a key than the limit. `spark.edges` scores the pairs.

Keys have the bits that the local engine keeps, so both engines ignore the same common keys and find the same pairs.
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
"""Maximum number of leading bits that the keys of a table share. With more, the number of tables grows faster than the
number of pairs per table falls.
"""
_ROUNDING: Final = 1e-9

_Batches = Iterable[pyarrow.RecordBatch]
_Keys = Callable[
    [NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.uint64], NDArray[np.int64]]
]
"""(words, starts, rows) of sketches -> keys of the rows, one row after the other, and the number of keys per row."""


class SourcePairs(NamedTuple):
    """The pairs of a source, and the number of keys that it ignored."""

    pairs: DataFrame
    common_keys: int


def source_pairs(name: str, documents: DataFrame, options: Options, scratch: Scratch) -> SourcePairs:
    """Return the pairs that the named source finds among documents (row, fingerprint, sketch)."""
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
    """Postings of rare keys, postings of common keys, and the number of common keys."""

    postings: DataFrame
    left_out: DataFrame
    keys: int


def _postings(documents: DataFrame, keys_of: _Keys, scratch: Scratch) -> DataFrame:
    """Return (key, row, times), each key of a row once. `times` counts equal keys of the row, mostly 1."""

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
    """Drop most pairs that share a template and little else.

    `score_samples` would reject these pairs later, after their sketches were sent to it. The bound is weaker for two
    moduli, because the number of shingles that the finer sample has at the coarser modulus is not available here.
    `shared` becomes an upper bound for the number of shared shingles: ignored keys count as shared if both rows have
    some, up to the smaller number.
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
    """Split the postings by key. A key is common if more than `common` rows have it."""
    counts = postings.groupBy(key).count().where(F.col("count") > common)
    too_common = scratch.keep(counts.select(key), "common")
    found = too_common.count()
    if not found:
        return _Rare(postings, postings.limit(0), 0)
    return _Rare(postings.join(too_common, key, "left_anti"), postings.join(too_common, key, "left_semi"), found)


def _pairs_within(postings: DataFrame, key: str, *of_a: str) -> DataFrame:
    """Return (a, b) for every two rows with the same key, once per shared key, with columns of the posting of `a`."""
    left = postings.select(key, F.col("row").alias("a"), *of_a)
    right = postings.select(key, F.col("row").alias("b"))
    return left.join(right, key).where("a < b").select("a", "b", *of_a)


# Fingerprints that may differ in k bits

_FINGERPRINTS: Final = {
    "hamming": "true",
    # Pairs that the probabilistic search of the local engine finds differ in at most one bit of the header.
    "psm": f"bit_count(shiftrightunsigned(x ^ y, {BITS - HEADER})) <= 1",
}


def _near_fingerprints(documents: DataFrame, options: Options, wanted: str, scratch: Scratch) -> SourcePairs:
    """Compare fingerprints that share the leading bits of a permuted table (Manku 2007 §3.1)."""
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
    """Choose a design in which about one fingerprint per value of the leading bits is expected."""
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
    """Return pairs of bags that share a rare spot.

    The spots of each bag are ordered from the rarest. Two bags whose resemblance reaches the threshold t share a spot
    before the position in each bag from which less than a share t of the bag is left, so only earlier spots are joined.
    Repeated occurrences of a spot are separate keys, as in a set of numbered shingles (Broder 1997, "On the resemblance
    and containment of documents"), because few documents may have the second occurrence of a common spot.
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

"""Measurements of every method on labelled pairs, as columns with one row per pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.evaluation.pairs import Pair, groups_of
from neardup.signatures.bands import BandFilter
from neardup.signatures.fingerprint import hamming
from neardup.signatures.packed_sketch import compare, pack_sketch
from neardup.signatures.shingles import containment, resemblance, shingles_of
from neardup.signatures.signature import KEPT, Signature, Signatures
from neardup.signatures.spot_signatures import spot_resemblance
from neardup.text.languages import language_of
from neardup.types import Page

UNKNOWN: Final = -1.0
"""Estimate for a skipped page or a too small sample, below every threshold."""
FAR: Final = 65
"""Distance from a page without a fingerprint, greater than every k."""
NO_LANGUAGE: Final = "unknown"
MIXED: Final = "mixed"
UNKNOWN_HOST: Final = "unknown"
_HOSTS: Final = {None: UNKNOWN_HOST, True: "same", False: "cross"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Columns of measurements. Containment is the larger of both directions, because either page may come later."""

    label: NDArray[np.bool_]
    group: NDArray[np.int64]
    source: NDArray[np.str_]
    host: NDArray[np.str_]
    language: NDArray[np.str_]
    tokens: NDArray[np.int64]
    """Number of tokens of the shorter page."""
    same: NDArray[np.bool_]
    """True if the checksums agree on a level. False if a page was skipped, because it cannot be a duplicate."""
    hamming: NDArray[np.int64]
    exact: NDArray[np.float64]
    exact_containment: NDArray[np.float64]
    sketch: NDArray[np.float64]
    sketch_containment: NDArray[np.float64]
    agreeing: NDArray[np.bool_]
    """Agreement of the m kept bytes of the MIPs vectors, one row of m booleans per pair."""
    groups: NDArray[np.int64]
    supers: NDArray[np.int64]
    spots: NDArray[np.float64]
    sketch_bytes: float
    """Mean size of the sketches in bytes."""

    def __len__(self) -> int:
        return self.label.size

    def shared_bands(self, bands: BandFilter) -> NDArray[np.int64]:
        """Count the bands on which each pair agrees, for any division of the m values into bands."""
        assert bands.k * bands.s <= self.agreeing.shape[1]
        cut = self.agreeing[:, : bands.k * bands.s].reshape(len(self), bands.k, bands.s)
        shared: NDArray[np.int64] = cut.all(axis=2).sum(axis=1)
        return shared


@dataclass(frozen=True, slots=True)
class _Side:
    signature: Signature
    shingles: NDArray[np.uint64]
    packed: NDArray[np.uint64] | None
    tokens: int
    language: str | None


def measure(pairs: Sequence[Pair], signatures: Signatures) -> Measures:
    """Measure all pairs. The signatures must be complete (`everything`).

    Raises OverLimit if the settings reject pages over a limit.
    """
    rows = [(_side(signatures, pair.a), _side(signatures, pair.b)) for pair in pairs]
    m = signatures.choices.m
    count = len(pairs)
    same, agreeing = np.zeros(count, bool), np.zeros((count, m), bool)
    distance, groups, supers = np.full(count, FAR), np.zeros(count, np.int64), np.zeros(count, np.int64)
    sketch, contained, spots = (np.full(count, UNKNOWN) for _ in range(3))
    for row, (a, b) in enumerate(rows):
        one, two = a.signature.sketches, b.signature.sketches
        if one is None or two is None or a.packed is None or b.packed is None:
            continue
        assert a.signature.fingerprint is not None
        assert b.signature.fingerprint is not None
        same[row] = a.signature.checksums.relation_to(b.signature.checksums) is not None
        distance[row] = hamming(a.signature.fingerprint.value, b.signature.fingerprint.value)
        likeness = compare(a.packed, b.packed)
        sketch[row] = likeness.resemblance
        shares = [share for share in (likeness.a_in_b, likeness.b_in_a) if share is not None]
        contained[row] = max(shares, default=UNKNOWN)
        agreeing[row] = one.mips & KEPT == two.mips & KEPT
        groups[row] = (one.filter == two.filter).sum()
        supers[row] = np.intersect1d(one.supers, two.supers).size
        if one.spots.size and two.spots.size:  # Two pages without stop words have no spots to compare.
            spots[row] = spot_resemblance(one.spots, two.spots)
    sizes = [side.packed.nbytes for row in rows for side in row if side.packed is not None]
    return Measures(
        label=np.array([pair.label for pair in pairs]),
        group=np.array(groups_of(pairs)),
        source=np.array([pair.source for pair in pairs]),
        host=np.array([_HOSTS[pair.same_host] for pair in pairs]),
        language=np.array([_language(a, b) for a, b in rows]),
        tokens=np.array([min(a.tokens, b.tokens) for a, b in rows]),
        same=same,
        hamming=distance,
        exact=np.array([resemblance(a.shingles, b.shingles) for a, b in rows]),
        exact_containment=np.array(
            [max(containment(a.shingles, b.shingles), containment(b.shingles, a.shingles)) for a, b in rows]
        ),
        sketch=sketch,
        sketch_containment=contained,
        agreeing=agreeing,
        groups=groups,
        supers=supers,
        spots=spots,
        sketch_bytes=float(np.mean(sizes)) if sizes else 0.0,
    )


def _side(signatures: Signatures, page: Page) -> _Side:
    signature = signatures.of(page)
    _, tokens = signatures.text_and_tokens(page)
    packed = None if signature.sketches is None else pack_sketch(signature.sketches)
    shingles = shingles_of(tokens, signatures.choices.w)
    return _Side(signature, shingles, packed, len(tokens), language_of(tokens.hashes))


def _language(a: _Side, b: _Side) -> str:
    if a.language is not None and b.language is not None and a.language != b.language:
        return MIXED
    return a.language or b.language or NO_LANGUAGE

"""Explanation of the decision on two pages: all the evidence for and against a duplicate, side by side."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from neardup.matching.rule import Thresholds, decide
from neardup.signatures.features import features_of
from neardup.signatures.fingerprint import Fingerprint, hamming
from neardup.signatures.packed_sketch import compare, pack_sketch
from neardup.signatures.shingles import containment, resemblance, shingles_of
from neardup.signatures.signature import Signature, Signatures
from neardup.signatures.sketch import containment_by_sample, resemblance_by_mips, resemblance_by_sample
from neardup.signatures.spot_signatures import spot_resemblance
from neardup.types import Kind, Page, Relation

_MOST_DIFFED: Final = 20_000
"""Maximum number of words per page in the comparison for spans, which takes quadratic time in the worst case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two pages."""

    name: str
    tokens: list[str]
    features: int
    shingles: int
    fingerprint: int | None
    skipped: str | None
    cut: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bit:
    """A bit in which the fingerprints differ, with the sum of its votes in each page.

    `share` is the smaller of the two sums, without sign, relative to the largest sum of all bits.
    """

    bit: int
    a: int
    b: int
    share: float


@dataclass(frozen=True, slots=True)
class Span:
    """A run of words: in both pages, only in a, or only in b."""

    where: str
    words: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The evidence and the decision. Estimates are None if a page was skipped; exact figures are always present."""

    signature_version: str
    a: Side
    b: Side
    hamming: int | None
    bits: list[Bit]
    resemblance: float
    resemblance_by_mips: float | None
    resemblance_by_sample: float | None
    resemblance_of_spots: float | None
    containment_a_in_b: float
    containment_b_in_a: float
    containment_a_in_b_by_sample: float | None
    containment_b_in_a_by_sample: float | None
    shared_bands: int | None
    shared_groups: int | None
    spans: list[Span]
    verdict: Kind
    relation: Relation | None
    because: list[str]
    would_change: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON. Fingerprints are hexadecimal, as they do not fit a JSON number."""
        plain: dict[str, Any] = _plain(self)
        return plain


def explain(
    signatures: Signatures, a: Page, b: Page, thresholds: Thresholds | None = None, *, k: int = 3
) -> Explanation:
    """Compare two pages as a deployment that finds fingerprints within k bits does.

    Raises OverLimit if a page is over a limit and the limits reject such pages.
    """
    thresholds = thresholds or Thresholds()
    left, left_side, left_shingles = _side(signatures, a)
    right, right_side, right_shingles = _side(signatures, b)
    exact = resemblance(left_shingles, right_shingles)
    a_in_b, b_in_a = containment(left_shingles, right_shingles), containment(right_shingles, left_shingles)
    one, two = left.sketches, right.sketches
    apart = bits = None
    if left.fingerprint is not None and right.fingerprint is not None:
        apart = hamming(left.fingerprint.value, right.fingerprint.value)
        bits = _bits(left.fingerprint, right.fingerprint)
    verdict, relation, because, would_change = _judge(left, right, thresholds, k)
    return Explanation(
        signature_version=signatures.version,
        a=left_side,
        b=right_side,
        hamming=apart,
        bits=bits or [],
        resemblance=exact,
        resemblance_by_mips=resemblance_by_mips(one.mips, two.mips) if one and two else None,
        resemblance_by_sample=resemblance_by_sample(one.sample, two.sample) if one and two else None,
        resemblance_of_spots=spot_resemblance(one.spots, two.spots) if one and two else None,
        containment_a_in_b=a_in_b,
        containment_b_in_a=b_in_a,
        containment_a_in_b_by_sample=containment_by_sample(one.sample, two.sample) if one and two else None,
        containment_b_in_a_by_sample=containment_by_sample(two.sample, one.sample) if one and two else None,
        shared_bands=int((one.bands == two.bands).sum()) if one and two else None,
        shared_groups=int((one.filter == two.filter).sum()) if one and two else None,
        spans=_spans(left_side.tokens, right_side.tokens),
        verdict=verdict,
        relation=relation,
        because=because,
        would_change=would_change,
    )


def _side(signatures: Signatures, page: Page) -> tuple[Signature, Side, NDArray[np.uint64]]:
    signature = signatures.of(page)
    _, tokens = signatures.text_and_tokens(page)
    shingles = shingles_of(tokens, signatures.choices.w)
    side = Side(
        name=page.url,
        tokens=tokens.words(),
        features=len(features_of(tokens, signatures.choices.features)),
        shingles=shingles.size,
        fingerprint=None if signature.fingerprint is None else signature.fingerprint.value,
        skipped=signature.skipped,
        cut=signature.cut,
    )
    return signature, side, shingles


def _bits(a: Fingerprint, b: Fingerprint) -> list[Bit]:
    # Bits with small sums of votes flip first (Sood 2011 §4.3).
    most = max(int(np.abs(a.weights).max()), int(np.abs(b.weights).max()), 1)
    differing = [bit for bit in range(a.width) if (a.value ^ b.value) >> bit & 1]
    return [
        Bit(
            bit,
            int(a.weights[bit]),
            int(b.weights[bit]),
            round(min(abs(int(a.weights[bit])), abs(int(b.weights[bit]))) / most, 3),
        )
        for bit in differing
    ]


def _spans(a: list[str], b: list[str]) -> list[Span]:
    left, right = a[:_MOST_DIFFED], b[:_MOST_DIFFED]
    spans = []
    for what, i, j, k, n in SequenceMatcher(None, left, right, autojunk=len(left) > 2000).get_opcodes():
        if what == "equal":
            spans.append(Span("both", left[i:j]))
            continue
        if j > i:
            spans.append(Span("a", left[i:j]))
        if n > k:
            spans.append(Span("b", right[k:n]))
    return spans


def _judge(
    a: Signature, b: Signature, limits: Thresholds, k: int
) -> tuple[Kind, Relation | None, list[str], list[str]]:
    # b is the later page. As in the stages, the decision uses sketches, not texts.
    same = b.checksums.relation_to(a.checksums)
    if b.skipped is not None:
        return Kind.SKIPPED, None, [f"b is {b.skipped}"], ["more text in b"]
    if a.skipped is not None:
        return Kind.UNIQUE, None, [f"a is {a.skipped}, so nothing is compared with it"], ["more text in a"]
    if same is not None:
        return Kind.DUPLICATE, same, [f"equal checksums: {same}"], ["any other word"]
    assert a.fingerprint is not None
    assert b.fingerprint is not None
    assert a.sketches is not None
    assert b.sketches is not None
    apart = hamming(a.fingerprint.value, b.fingerprint.value)
    bands = int((a.sketches.bands == b.sketches.bands).sum())
    likeness = compare(pack_sketch(b.sketches), pack_sketch(a.sketches))
    alike, inside = likeness.resemblance, likeness.a_in_b or 0.0
    found = [
        (apart <= k, f"found by simhash: {apart} bits differ, {k} may"),
        (bands > 0, f"found by bands: {bands} shared, 1 is enough"),
    ]
    evidence = [
        (alike >= limits.resemblance, f"near: resemblance {alike:.3f}, {limits.resemblance:g} is enough"),
        (inside >= limits.containment, f"contained: {inside:.3f} of b in a, {limits.containment:g} is enough"),
    ]
    because = [f"{text}: {'yes' if holds else 'no'}" for holds, text in found + evidence]
    is_found = any(holds for holds, _ in found)
    relation = decide(None, alike, likeness.a_in_b, limits)
    if is_found and relation is not None:
        change = f"a resemblance threshold above {alike:.3f} and a containment threshold above {inside:.3f}"
        return Kind.DUPLICATE, relation, because, [change]
    changes = [] if is_found else [f"a hamming limit of {apart}, for it to be found"]
    if relation is None:
        changes.append(f"a resemblance threshold of {alike:.3f} or a containment threshold of {inside:.3f}")
    return Kind.UNIQUE, None, because, changes


def _plain(value: Any) -> Any:
    if isinstance(value, (Explanation, Side, Bit, Span)):
        fields = {name: _plain(getattr(value, name)) for name in value.__slots__}
        if isinstance(value, Side) and value.fingerprint is not None:
            fields["fingerprint"] = f"{value.fingerprint:016x}"
        return fields
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value

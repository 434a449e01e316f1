"""An oracle that computes the final verdicts directly, by comparing every page with all earlier pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neardup.matching.rule import Thresholds
from neardup.signatures.signature import Signature, Sketches
from neardup.types import DocumentId, Kind, Relation


@dataclass(frozen=True)
class Oracle:
    """The rules of a deployment in their plainest form."""

    k: int
    uses_bands: bool
    thresholds: Thresholds

    def final_verdicts(self, pages: Mapping[DocumentId, Signature]) -> dict[DocumentId, tuple[Kind, set[DocumentId]]]:
        """Return for every page the final verdict and the set of earlier pages that it may duplicate."""
        ends: dict[DocumentId, tuple[Kind, set[DocumentId]]] = {}
        for page, signature in pages.items():
            if signature.fingerprint is None:
                ends[page] = Kind.SKIPPED, set()
                continue
            matches = {
                earlier
                for earlier, other in pages.items()
                if earlier < page and self.relation(signature, other) is not None
            }
            ends[page] = (Kind.DUPLICATE if matches else Kind.UNIQUE), matches
        return ends

    def relation(self, later: Signature, earlier: Signature) -> Relation | None:
        """Return the relation in which the later page duplicates the earlier one, or None."""
        if later.fingerprint is None or earlier.fingerprint is None or not self._is_candidate(later, earlier):
            return None
        for relation, level in zip(Relation, ("content", "tokens", "shingles"), strict=False):
            if getattr(later.checksums, level) == getattr(earlier.checksums, level):
                return relation
        if naive_resemblance(later, earlier) >= self.thresholds.resemblance:
            return Relation.NEAR
        inside = naive_containment(later, earlier)
        return Relation.CONTAINED if inside is not None and inside >= self.thresholds.containment else None

    def _is_candidate(self, a: Signature, b: Signature) -> bool:
        assert a.fingerprint is not None
        assert b.fingerprint is not None
        if bin(a.fingerprint.value ^ b.fingerprint.value).count("1") <= self.k:
            return True
        bands = zip(sketches(a).bands.tolist(), sketches(b).bands.tolist(), strict=True)
        return self.uses_bands and any(one == other for one, other in bands)


def sketches(signature: Signature) -> Sketches:
    """Return the sketches of a page that was not skipped."""
    assert signature.sketches is not None
    return signature.sketches


def naive_resemblance(a: Signature, b: Signature) -> float:
    """Estimate the resemblance from the low bytes of the MIPs values, corrected for bytes that agree by chance."""
    one, other = ([value % 256 for value in sketches(each).mips.tolist()] for each in (a, b))
    share = sum(left == right for left, right in zip(one, other, strict=True)) / len(one)
    return max(0.0, float(share - 1 / 256) / (1 - 1 / 256))


def naive_containment(a: Signature, b: Signature) -> float | None:
    """Estimate the share of a's sample that is in b's, at the coarser modulus. None if a has fewer than 8 shingles."""
    one, other = sketches(a).sample, sketches(b).sample
    modulus = 2 ** max(one.i, other.i)
    left, right = _divisible(one.values.tolist(), modulus), _divisible(other.values.tolist(), modulus)
    return len(left & right) / len(left) if len(left) >= 8 else None


def _divisible(values: Sequence[int], modulus: int) -> set[int]:
    return {value for value in values if value % modulus == 0}

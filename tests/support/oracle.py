"""What the stream must end in, worked out the slow way: every page compared with all earlier ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neardup.matching.rule import Thresholds
from neardup.signatures.signature import Signature, Sketches
from neardup.types import DocumentId, Kind, Relation


@dataclass(frozen=True)
class Oracle:
    """The rules of a deployment, in the plainest form."""

    k: int
    uses_bands: bool
    thresholds: Thresholds

    def ends_as(self, pages: Mapping[DocumentId, Signature]) -> dict[DocumentId, tuple[Kind, set[DocumentId]]]:
        """Of every page the last verdict, and the earlier pages that it may be said to duplicate."""
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
        """How the later page duplicates the earlier one, if at all."""
        if later.fingerprint is None or earlier.fingerprint is None or not self._meet(later, earlier):
            return None
        for relation, level in zip(Relation, ("content", "tokens", "shingles"), strict=False):
            if getattr(later.checksums, level) == getattr(earlier.checksums, level):
                return relation
        if naive_resemblance(later, earlier) >= self.thresholds.resemblance:
            return Relation.NEAR
        inside = naive_containment(later, earlier)
        return Relation.CONTAINED if inside is not None and inside >= self.thresholds.containment else None

    def _meet(self, a: Signature, b: Signature) -> bool:
        assert a.fingerprint is not None
        assert b.fingerprint is not None
        if bin(a.fingerprint.value ^ b.fingerprint.value).count("1") <= self.k:
            return True
        bands = zip(sketches(a).bands.tolist(), sketches(b).bands.tolist(), strict=True)
        return self.uses_bands and any(one == other for one, other in bands)


def sketches(signature: Signature) -> Sketches:
    """Those of a page that was not skipped."""
    assert signature.sketches is not None
    return signature.sketches


def naive_resemblance(a: Signature, b: Signature) -> float:
    """From the low bytes of the MIPs values: the share that agrees, without those that agree by chance."""
    one, other = ([value % 256 for value in sketches(each).mips.tolist()] for each in (a, b))
    share = sum(left == right for left, right in zip(one, other, strict=True)) / len(one)
    return max(0.0, float(share - 1 / 256) / (1 - 1 / 256))


def naive_containment(a: Signature, b: Signature) -> float | None:
    """How much of a's sample, at the coarser modulus of the two, is in b's; None with fewer than 8 shingles of a."""
    one, other = sketches(a).sample, sketches(b).sample
    modulus = 2 ** max(one.i, other.i)
    left, right = _divisible(one.values.tolist(), modulus), _divisible(other.values.tolist(), modulus)
    return len(left & right) / len(left) if len(left) >= 8 else None


def _divisible(values: Sequence[int], modulus: int) -> set[int]:
    return {value for value in values if value % modulus == 0}

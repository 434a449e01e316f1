"""Near-copies of pages: so few words are replaced that the rule still calls the copy a duplicate."""

import random
from dataclasses import dataclass, replace
from typing import Final

from neardup.errors import RecordError
from neardup.matching.rule import Thresholds, decide
from neardup.signatures.packed_sketch import compare, pack_sketch
from neardup.signatures.signature import Signature, Signatures
from neardup.types import Page, Relation

_TRIES: Final = 5
"""Number of attempts, each with half as many changes. The estimated resemblance can miss the threshold by chance."""
_LETTERS: Final = "bcdfghjklmnpqrstvwxz"


@dataclass(frozen=True, slots=True)
class NearCopy:
    """The changed page, its relation to the original, and the estimated resemblance of the two."""

    page: Page
    relation: Relation
    resemblance: float


class NearCopies:
    """Makes near-copies with the signatures and the rule of a deployment."""

    def __init__(self, signatures: Signatures, thresholds: Thresholds) -> None:
        self._signatures = signatures
        self._thresholds = thresholds

    def of(self, page: Page, draw: random.Random) -> NearCopy | None:
        """Return a copy whose resemblance is about uniform between the threshold and 1.

        Returns None if no copy can be made: the page has no sketch, or so few words that any change is too much.
        """
        try:
            _, tokens = self._signatures.text_and_tokens(page)
            words = tokens.words()
            original = self._signatures.of(page)
        except RecordError:
            return None
        if original.sketches is None:
            return None
        wanted = draw.uniform(self._thresholds.resemblance, 1.0)
        # A word is in w shingles. Of n shingles, d changed words leave n - wd shared; the union then has n + wd.
        w = self._signatures.choices.w
        changes = max(1, round(len(words) * (1 - wanted) / (w * (1 + wanted))))
        for _ in range(_TRIES):
            copy = self._checked(page, original, _changed(words, changes, draw))
            if copy is not None or changes == 1:
                return copy
            changes = max(1, changes // 2)
        return None

    def _checked(self, page: Page, original: Signature, words: list[str]) -> NearCopy | None:
        text = " ".join(words)
        # The copy has only text: markup, charset and content type described the original bytes.
        changed = replace(page, html=None, text=text, content_type=None, charset=None)
        try:
            copy = self._signatures.of(changed)
        except RecordError:
            return None
        same = copy.checksums.relation_to(original.checksums)
        if copy.sketches is None or original.sketches is None or same in (Relation.IDENTICAL, Relation.SAME_TEXT):
            return None
        likeness = compare(pack_sketch(copy.sketches), pack_sketch(original.sketches))
        relation = decide(same, likeness.resemblance, likeness.a_in_b, self._thresholds)
        return None if relation is None else NearCopy(changed, relation, round(likeness.resemblance, 4))


def _changed(words: list[str], count: int, draw: random.Random) -> list[str]:
    """Return the words with `count` of them, at random positions, replaced by random letters."""
    changed = list(words)
    for place in draw.sample(range(len(words)), min(count, len(words))):
        changed[place] = "".join(draw.choices(_LETTERS, k=9))
    return changed

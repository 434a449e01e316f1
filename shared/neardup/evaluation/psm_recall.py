"""Recall of the probabilistic search against the exact search, on weights of real pages (Sood 2011 §8.2).

The flip model is fitted to labelled near-duplicates and tested on others. Pairs that share a page stay in one fold.
Both pages of a pair are used as queries.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import InvalidPair
from neardup.evaluation.crossvalidation import FOLDS, REPETITIONS
from neardup.evaluation.pairs import Pair, groups_of
from neardup.index.psm.flip_model import FlipModel, simulated_model
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures

TARGET_RECALL: Final = 0.95
"""Recall for which the necessary flips are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PsmRecall:
    """The share of near-duplicates within k bits that are found with the number of flips in the settings.

    `fitted` is the share with a fitted model, `simulated` with a simulated one. `fitted_flips` and `simulated_flips`
    are the numbers of flips that find 95% of the pairs.
    """

    k: int
    pairs: int
    header_bits: int
    flips: int
    fitted: float
    simulated: float
    fitted_flips: int
    simulated_flips: int

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Weights:
    """Weights of both pages of some pairs in rows of 64, in the bit order of the tables."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    group: NDArray[np.int64]

    @property
    def distance(self) -> NDArray[np.int64]:
        """Number of bits in which the two fingerprints differ."""
        differing: NDArray[np.int64] = ((self.a >= 0) != (self.b >= 0)).sum(axis=1)
        return differing

    def select(self, chosen: NDArray[np.bool_]) -> "_Weights":
        """Return the selected pairs."""
        return _Weights(self.a[chosen], self.b[chosen], self.group[chosen])


def psm_recall(pairs: Sequence[Pair], settings: Settings, ks: Sequence[int], *, seed: int = 0) -> list[PsmRecall]:
    """Measure the recall for each k with enough pairs.

    Raises InvalidPair if no k has enough pairs, and OverLimit if the settings reject pages over a limit.
    """
    weights = _weights_of(pairs, settings)
    found = []
    for k in ks:
        near = weights.select(weights.distance <= k)
        if np.unique(near.group).size >= FOLDS:
            found.append(_recall(near, k, settings, seed))
    if not found:
        raise InvalidPair(
            f"expected near-duplicates within {max(ks)} bits in at least {FOLDS} groups that share no page, got fewer; "
            "label more near-duplicates"
        )
    return found


def _recall(near: _Weights, k: int, settings: Settings, seed: int) -> PsmRecall:
    fitted: list[NDArray[np.int64]] = []
    names = np.unique(near.group)
    rng = np.random.default_rng(seed)
    for _ in range(REPETITIONS):
        fold = dict(zip(rng.permutation(names).tolist(), (np.arange(names.size) % FOLDS).tolist(), strict=True))
        of_pair = np.array([fold[each] for each in near.group.tolist()])
        for number in range(FOLDS):
            others, own = near.select(of_pair != number), near.select(of_pair == number)
            fitted.append(_attempts(FlipModel.fit(others.a, others.b), own, k, settings.header_bits))
    by_fold, simulated = np.concatenate(fitted), _attempts(simulated_model(), near, k, settings.header_bits)
    flips = settings.flips
    return PsmRecall(
        k=k,
        pairs=len(near.a),
        header_bits=settings.header_bits,
        flips=flips,
        fitted=float((by_fold <= flips).mean()),
        simulated=float((simulated <= flips).mean()),
        fitted_flips=_flips_needed(by_fold),
        simulated_flips=_flips_needed(simulated),
    )


def _attempts(model: FlipModel, pairs: _Weights, k: int, header: int) -> NDArray[np.int64]:
    """Return the number of flips until each page finds the other page, first for the queries `a`, then for `b`."""
    differences = _words(pairs.a) ^ _words(pairs.b)
    sides = (model.levels_of(side) for side in (pairs.a, pairs.b))
    return np.concatenate([model.attempts(differences, levels, header=header, k=k) for levels in sides])


def _flips_needed(attempts: NDArray[np.int64]) -> int:
    return int(np.sort(attempts)[int(np.ceil(TARGET_RECALL * attempts.size)) - 1])


def _words(weights: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the fingerprints of rows of weights.

    A bit is set if its weight is not negative. The first column is the most significant bit.
    """
    packed = np.packbits(weights >= 0, axis=1)
    return packed.view(">u8").astype(np.uint64).ravel()


def _weights_of(pairs: Sequence[Pair], settings: Settings) -> _Weights:
    signatures = Signatures(SignatureOptions.of(settings), everything=False)
    rows, groups = [], []
    for pair, group in zip(pairs, groups_of(pairs), strict=True):
        a, b = signatures.of(pair.a).fingerprint, signatures.of(pair.b).fingerprint
        if pair.label and a is not None and b is not None:
            rows.append((a.weights[::-1], b.weights[::-1]))
            groups.append(group)
    both = np.array(rows, np.float64).reshape(-1, 2, 64)
    return _Weights(both[:, 0], both[:, 1], np.array(groups, np.int64))

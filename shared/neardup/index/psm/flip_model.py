"""Probability that a bit flips, by its simhash weight: the empirical model of Sood & Loguinov 2011 §4.3 and §5.1.

Bit j of a page's fingerprint is the sign of its weight W_j. In a similar page the weight is W_j - Y, so the bit flips
with probability p_j = P(Y > |W_j|). The distribution of Y is sampled from pairs of similar pages. Weights are divided
by their root mean square over the 64 bits, so that one model applies to long and short pages, and rounded down to one
of 256 levels, which take one byte per bit in messages.
"""

import json
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import CorruptState, WrongState
from neardup.index.psm import simulated_weights
from neardup.index.psm.sorting_network import sorting_network
from neardup.kernels.index.flipping import attempts_needed
from neardup.util.atomic_file import write_text

MAGIC: Final = "neardup flip model"
VERSION: Final = 1
LEVELS: Final = 256
REACH: Final = 4.0
"""Upper end of the levels, in root mean squares. Larger weights have the last level."""
COST_STEPS: Final = 256
"""Costs are integers in units of 1/256 nats. Rounding to so small a unit rarely changes the order of flips."""
MOST_COST: Final = 8000
"""Maximum cost of a bit. The sum of seven such costs fits the 16 bits of a set's cost."""
MOST_ATTEMPTS: Final = 4096


@dataclass(frozen=True)
class FlipModel:
    """A flip model. `costs[level]` is -log(p / (1 - p)) in units of 1/256, and does not fall as the level rises."""

    costs: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.costs) != LEVELS or list(self.costs) != sorted(self.costs) or self.costs[0] < 0:
            raise ValueError(f"expected {LEVELS} costs that do not fall, got {len(self.costs)}")

    @classmethod
    def fit(cls, weights: NDArray[np.floating[Any]], similar: NDArray[np.floating[Any]]) -> "FlipModel":
        """Fit a model to similar pages: row i of `weights` and row i of `similar` are the weights of a pair."""
        change = np.sort(np.abs(scaled(weights) - scaled(similar)).ravel())
        middles = (np.arange(LEVELS) + 0.5) * (REACH / LEVELS)
        # Y is symmetric, so P(Y > c) is half of P(|Y| > c). Additive smoothing keeps it above 0.
        beyond = change.size - np.searchsorted(change, middles, "right")
        chance = 0.5 * (beyond + 1) / (change.size + 2)
        costs = [min(MOST_COST, round(-log(p / (1 - p)) * COST_STEPS)) for p in chance]
        return cls(tuple(np.maximum.accumulate(np.maximum(costs, 0)).tolist()))

    @property
    def table(self) -> NDArray[np.uint16]:
        """The costs in the form that the kernels accept."""
        return np.array(self.costs, np.uint16)

    def levels_of(self, weights: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
        """Return the levels of rows of 64 weights, as one byte per bit."""
        levels: NDArray[np.uint8] = np.minimum(np.abs(scaled(weights)) * (LEVELS / REACH), LEVELS - 1).astype(np.uint8)
        return levels

    def attempts_for(
        self,
        recall: float,
        fingerprints: NDArray[np.uint64],
        levels: NDArray[np.uint8],
        others: NDArray[np.uint64],
        *,
        header: int,
        k: int,
        first: bool = False,
    ) -> int:
        """Return k(t) of the paper: the fewest flips of `header` bits that find the share `recall` of all pairs.

        A pair is a fingerprint and the corresponding one of `others`. Pairs further apart than k are ignored. With
        `first`, a fingerprint counts as found if one of its pairs is found. Raises ValueError if there is no pair, or
        if MOST_ATTEMPTS flips are not enough.
        """
        near = np.bitwise_count(fingerprints ^ others) <= k
        if not near.any():
            raise ValueError(f"expected pairs within {k} bits, got none of {fingerprints.size}")
        attempts = self.attempts((fingerprints ^ others)[near], levels[near], header=header, k=k)
        if first:
            order = np.argsort(fingerprints[near], kind="stable")
            starts = np.unique(fingerprints[near][order], return_index=True)[1]
            attempts = np.minimum.reduceat(attempts[order], starts)
        needed = int(np.sort(attempts)[min(attempts.size - 1, int(np.ceil(recall * attempts.size)) - 1)])
        if needed > MOST_ATTEMPTS:
            raise ValueError(
                f"expected recall {recall} within {MOST_ATTEMPTS} flips of {header} bits, did not reach it"
            )
        return max(1, needed)

    def attempts(
        self, differences: NDArray[np.uint64], levels: NDArray[np.uint8], *, header: int, k: int
    ) -> NDArray[np.int64]:
        """Return the number of the flip that reaches each difference of at most k bits (see `attempts_needed`)."""
        found = np.empty(differences.size, np.int64)
        ranking = sorting_network(header, header)
        attempts_needed(differences, levels, self.table, header, k, MOST_ATTEMPTS, ranking, found)
        return found

    def save(self, path: Path) -> None:
        """Write the file, or replace it, and wait until it is on the disk."""
        write_text(path, json.dumps({"magic": MAGIC, "version": VERSION, "costs": self.costs}) + "\n")

    @classmethod
    def load(cls, path: Path) -> "FlipModel":
        """Read the file. Raises WrongState for another kind or version, CorruptState otherwise."""
        try:
            body = json.loads(path.read_text())
            magic, version, costs = body["magic"], body["version"], body["costs"]
            if magic != MAGIC or version != VERSION:
                raise WrongState(f"{path}: expected {MAGIC!r} version {VERSION}, got {magic!r} version {version!r}")
            return cls(tuple(int(cost) for cost in costs))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptState(f"{path}: expected a flip model: {error!r}; fit it again") from error


def scaled(weights: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return the rows of weights, each divided by its root mean square."""
    size = np.sqrt(np.mean(np.square(weights), axis=1, keepdims=True))
    scaled: NDArray[np.floating[Any]] = weights / np.maximum(size, 1e-12)
    return scaled


def simulated_model(pairs: int = 4000) -> FlipModel:
    """Return a model fitted to simulated pages, for use until a model is fitted to a corpus. It is always the same."""
    rng = np.random.default_rng(2011)
    weights = simulated_weights.pages(rng, pairs)
    return FlipModel.fit(weights, simulated_weights.copies(rng, weights))

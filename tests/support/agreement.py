"""Measures of agreement between two clusterings of the same documents."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Agreement(NamedTuple):
    """Agreement of a found clustering with the true one. Each figure is 1.0 when the two are equal.

    `precision` and `recall` count pairs of documents in one cluster (1.0 if there is no such pair). The B-cubed figures
    are means over documents: the share of a document's found cluster that is in its true cluster, and the reverse
    (Bagga and Baldwin 1998). `rand` is the Rand index, adjusted for chance (Hubert and Arabie 1985).
    """

    precision: float
    recall: float
    bcubed_precision: float
    bcubed_recall: float
    rand: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall of pairs."""
        return _harmonic(self.precision, self.recall)

    @property
    def bcubed_f1(self) -> float:
        """The harmonic mean of the two B-cubed figures."""
        return _harmonic(self.bcubed_precision, self.bcubed_recall)


def agreement(found: NDArray[Any], true: NDArray[Any]) -> Agreement:
    """Compare two lists of labels, one label per document in the same order. There must be at least one document."""
    found_sizes, of_found = _counted(found)
    true_sizes, of_true = _counted(true)
    sizes, of_both = _counted(of_found * true_sizes.size + of_true)
    found_pairs, true_pairs, shared = (_pairs(each) for each in (found_sizes, true_sizes, sizes))
    by_chance = found_pairs * true_pairs / max(1, _pairs(np.array([found.size])))
    most = (found_pairs + true_pairs) / 2
    overlap = sizes[of_both]
    return Agreement(
        shared / found_pairs if found_pairs else 1.0,
        shared / true_pairs if true_pairs else 1.0,
        float(np.mean(overlap / found_sizes[of_found])),
        float(np.mean(overlap / true_sizes[of_true])),
        # All documents are alone in both clusterings or together in both. The index is undefined, but they are equal.
        (shared - by_chance) / (most - by_chance) if most != by_chance else 1.0,
    )


def _counted(labels: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of documents per label, and for each document the number of its label."""
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return counts, places


def _pairs(sizes: NDArray[np.int64]) -> int:
    return int((sizes * (sizes - 1) // 2).sum())


def _harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0

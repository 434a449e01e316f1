"""Cross-validation: a choice made on some pairs is evaluated on other pairs.

Pairs that share a page stay in one fold. Folds are assigned again in every repetition, with a fixed seed.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import InvalidPair
from neardup.evaluation.confusion import figures

FOLDS: Final = 5
REPETITIONS: Final = 10


def can_fold(label: NDArray[np.bool_], group: NDArray[np.int64], count: int = FOLDS) -> bool:
    """Return whether there are enough groups of pairs with and without duplicates for cross-validation."""
    _, _, positive = _groups(label, group)
    return bool(min(positive.sum(), (~positive).sum()) >= count)


def folds(
    label: NDArray[np.bool_],
    group: NDArray[np.int64],
    *,
    count: int = FOLDS,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> Iterator[NDArray[np.int64]]:
    """Yield for each repetition the fold of every pair, with duplicates and other pairs spread evenly.

    Raises InvalidPair if there are fewer groups of either kind than folds.
    """
    names, place, positive = _groups(label, group)
    for kind, some in (("near-duplicates", positive), ("other pairs", ~positive)):
        if some.sum() < count:
            raise InvalidPair(
                f"expected at least {count} groups of {kind} that share no page, for {count} folds, got {some.sum()}; "
                "label more pairs to get unbiased results"
            )
    rng = np.random.default_rng(seed)
    for _ in range(repetitions):
        of_group = np.empty(names.size, np.int64)
        start = 0
        for some in (positive, ~positive):
            members = rng.permutation(np.flatnonzero(some))
            of_group[members] = (np.arange(members.size) + start) % count
            start += members.size
        yield of_group[place]


def choose_best(label: NDArray[np.bool_], predicted: NDArray[np.bool_], least_precision: float = 0.0) -> int:
    """Return the first row of predictions with the best F1 among those that are precise enough.

    If none is precise enough, return the most precise row.
    """
    rows = predicted.astype(np.float32)  # a matrix product of floats is much faster than one of booleans
    hits, called = (rows @ label.astype(np.float32)).astype(float), rows.sum(axis=1).astype(float)
    precision, _, f1 = (np.nan_to_num(each) for each in figures(hits, called, float(label.sum())))
    enough = precision >= least_precision
    return int(np.argmax(np.where(enough, f1, -1.0))) if enough.any() else int(np.argmax(precision))


def out_of_fold(
    label: NDArray[np.bool_],
    predicted: NDArray[np.bool_],
    group: NDArray[np.int64],
    *,
    least_precision: float = 0.0,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return for each repetition the predictions by the variants chosen on the other folds, and the chosen variants.

    `predicted` has one row per variant. The predictions have one row per repetition. The chosen variants have one row
    per repetition and one column per fold. Raises InvalidPair.
    """
    honest, chosen = [], []
    for fold in folds(label, group, repetitions=repetitions, seed=seed):
        row = np.empty(label.size, bool)
        picks = []
        for number in range(FOLDS):
            test = fold == number
            picked = choose_best(label[~test], predicted[:, ~test], least_precision)
            row[test] = predicted[picked, test]
            picks.append(picked)
        honest.append(row)
        chosen.append(picks)
    return np.array(honest), np.array(chosen)


def _groups(
    label: NDArray[np.bool_], group: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the groups, the index of each pair's group, and whether each group has a duplicate."""
    names, place = np.unique(group, return_inverse=True)
    positive = np.zeros(names.size, bool)
    np.logical_or.at(positive, place, label)
    return names, place, positive

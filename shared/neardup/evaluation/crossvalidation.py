"""Cross-validation: what is chosen on some pairs is tried on others, never on the same.

Pairs that share a page stay in one fold. Folds are dealt out anew in every repetition, seeded.
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
    """Whether there are enough pairs of either kind for cross-validation."""
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
    """For each repetition the fold of every pair, with duplicates and others spread evenly.

    Raises InvalidPair if there are fewer groups with duplicates, or without, than folds: some fold would go without.
    """
    names, place, positive = _groups(label, group)
    for kind, some in (("near-duplicates", positive), ("other pairs", ~positive)):
        if some.sum() < count:
            raise InvalidPair(
                f"expected at least {count} groups of {kind} that share no page, for {count} folds, got {some.sum()}; "
                "without cross-validation no figure would be honest"
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
    """The row of predictions with the best F1 among those precise enough; the first of equals.

    If none is precise enough: the most precise.
    """
    rows = predicted.astype(np.float32)  # a product of floats is quick, one of booleans is not
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
    """For predictions of many variants, a row each: those of the variant chosen on the other folds, and which it was.

    A row a repetition of the first; of the second, a row a repetition and a column a fold. Raises InvalidPair.
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
    """The groups, the place of each pair's among them, and which of them have a duplicate."""
    names, place = np.unique(group, return_inverse=True)
    positive = np.zeros(names.size, bool)
    np.logical_or.at(positive, place, label)
    return names, place, positive

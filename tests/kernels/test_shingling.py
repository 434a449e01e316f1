import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.signatures import shingling
from tests.support import naive

# There are few values, so that they repeat; 0 marks a free slot; values with leading zeros fall into one slot.
VALUES = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1), st.just(2**64 - 1)), max_size=60)

SALTS = st.integers(0, 2**63 - 1).map(lambda half: 2 * half + 1)


def array(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, dtype=np.uint64)


@given(VALUES, st.integers(1, 9))
def test_ngrams(values: list[int], n: int) -> None:
    assert shingling.ngrams(array(values), n).tolist() == naive.ngrams(values, n)


@given(VALUES, st.integers(1, 9))
def test_sorted_ngrams(values: list[int], n: int) -> None:
    assert shingling.sorted_ngrams(array(values), n).tolist() == sorted(set(naive.ngrams(values, n)))


@given(VALUES, SALTS)
def test_distinct_keeps_the_order(values: list[int], salt: int) -> None:
    assert shingling.distinct(array(values), np.uint64(salt)).tolist() == naive.distinct(values)


def test_distinct_with_more_values_than_slots_of_the_sieve() -> None:
    values = [naive.xxh64(naive.pack([i * i % 3001])) for i in range(6000)]
    assert shingling.distinct(array(values), np.uint64(0x9E3779B97F4A7C15)).tolist() == naive.distinct(values)


@given(VALUES, SALTS)
def test_counted(values: list[int], salt: int) -> None:
    hashes, counts = shingling.counted(array(values), np.uint64(salt))
    assert list(zip(hashes.tolist(), counts.tolist(), strict=True)) == list(naive.counted(values).items())


@given(VALUES, VALUES)
def test_places_among_sorted_keys(keys: list[int], values: list[int]) -> None:
    ordered = sorted(set(keys))
    ref = [ordered.index(value) if value in ordered else -1 for value in values]
    assert shingling.places(array(ordered), array(values)).tolist() == ref


@given(VALUES, VALUES)
def test_marks_of_a_set(keys: list[int], values: list[int]) -> None:
    words = sorted(set(keys) - {0})
    table = shingling.word_table(array(words), 7)
    comp = shingling.marks(table, 7, array(values))
    assert comp.tolist() == [value in words for value in values]


@given(VALUES, VALUES)
def test_common(a: list[int], b: list[int]) -> None:
    assert shingling.common(array(sorted(set(a))), array(sorted(set(b)))) == len(set(a) & set(b))


@given(VALUES, VALUES)
def test_common_counted(a: list[int], b: list[int]) -> None:
    left, right = naive.counted(sorted(a)), naive.counted(sorted(b))
    ref = sum(min(left[value], right.get(value, 0)) for value in left)
    comp = shingling.common_counted(
        array(list(left)),
        np.array(list(left.values()), dtype=np.int64),
        array(list(right)),
        np.array(list(right.values()), dtype=np.int64),
    )
    assert comp == ref


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.booleans()), max_size=40), st.integers(1, 3), st.integers(1, 3))
def test_spots(words: list[tuple[int, bool]], distance: int, chain: int) -> None:
    tokens, stop = [word for word, _ in words], [stops for _, stops in words]
    comp = shingling.spots(array(tokens), np.array(stop, dtype=np.bool_), distance, chain)
    assert comp.tolist() == naive.spots(tokens, stop, distance, chain)

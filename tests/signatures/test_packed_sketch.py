"""Tests of packed sketches: their content, and the mean of their estimates."""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from neardup.kernels.signatures import comparing
from neardup.signatures.bands import BandFilter
from neardup.signatures.packed_sketch import (
    LEAST_SAMPLED,
    are_packed,
    bands_in_common,
    compare,
    is_packed,
    pack_sketch,
    sample_values,
)
from neardup.signatures.signature import KEPT, SignatureOptions, Signatures
from neardup.signatures.sketch import mips_of, sample_of
from neardup.types import Page
from tests.support.documents import M, shingles, sketch_of, sketches, text_of, word

REPEATS = 80


def overlapping(seed: int, shared: int, only_a: int, only_b: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return two sets with `shared` common elements and with elements of their own."""
    every = shingles(seed, shared + only_a + only_b)
    return every[: shared + only_a], np.concatenate([every[:shared], every[shared + only_a :]])


def test_a_packed_sketch_has_about_700_bytes() -> None:
    signature = Signatures().of(Page("u", text=" ".join(text_of(1, 5000))))
    assert signature.sketches is not None
    packed = pack_sketch(signature.sketches)
    assert 500 < packed.nbytes < 1000


@pytest.mark.parametrize("count", [0, 1, 99, 101, 5000])
def test_the_sample_is_read_back_completely(count: int) -> None:
    some = shingles(3, count)
    i, values = sample_values(sketch_of(some))
    assert i == sample_of(some).i
    assert values.tolist() == sample_of(some).values.tolist()


@pytest.mark.parametrize("resemblance", [0.0, 0.1, 0.3, 0.5, 0.65, 0.8, 0.95, 1.0])
def test_the_estimate_of_resemblance_is_right_on_average(resemblance: float) -> None:
    union = 600
    shared = round(union * resemblance)
    own = (union - shared) // 2
    estimates = [
        compare(*map(sketch_of, overlapping(seed, shared, own, union - shared - own))).resemblance
        for seed in range(REPEATS)
    ]
    # Four standard errors; for unrelated pages also the bias from the lower limit of 0.
    tolerance = 4 * sqrt(resemblance * (1 - resemblance) / M / REPEATS) + 0.005
    assert np.mean(estimates) == pytest.approx(resemblance, abs=tolerance)
    assert max(abs(each - resemblance) for each in estimates) < 0.25


@pytest.mark.parametrize(("equal", "resemblance"), [(0, 0.0), (1, 0.0), (2, 1 / 255), (128, 127 / 255), (256, 1.0)])
def test_the_estimate_is_corrected_for_bytes_that_agree_by_chance(equal: int, resemblance: float) -> None:
    a = np.arange(256, dtype=np.uint32)
    b = np.where(a < equal, a, a ^ 1)
    nothing = np.empty(0, np.uint64)
    likeness = compare(comparing.pack(0, a, nothing), comparing.pack(0, b.astype(np.uint32), nothing))
    assert likeness.resemblance == pytest.approx(resemblance)
    assert likeness.a_in_b is likeness.b_in_a is None


@pytest.mark.parametrize("containment", [0.0, 0.5, 0.9, 1.0])
def test_the_estimate_of_containment_is_right_on_average(containment: float) -> None:
    inside = round(400 * containment)
    found = []
    for seed in range(REPEATS):
        likeness = compare(*map(sketch_of, overlapping(seed, inside, 400 - inside, 1200 - inside)))
        assert likeness.a_in_b is not None
        found.append(likeness.a_in_b)
        assert likeness.b_in_a is not None
    # At the modulus of the longer document, 25 of the 400 shingles are left.
    tolerance = 4 * sqrt(containment * (1 - containment) / 25 / REPEATS) + 1e-9
    assert np.mean(found) == pytest.approx(containment, abs=tolerance)


@pytest.mark.parametrize("count", range(LEAST_SAMPLED - 3, LEAST_SAMPLED + 3))
def test_containment_is_not_estimated_with_fewer_than_8_shingles(count: int) -> None:
    a, b = shingles(1, count), shingles(1, 60)
    likeness = compare(sketch_of(a), sketch_of(b))
    assert likeness.a_in_b == (1.0 if count >= 8 else None)
    assert likeness.b_in_a == count / 60


def test_containment_of_a_short_page_in_a_very_long_one_is_not_estimated() -> None:
    every = shingles(1, 20_000)
    assert compare(sketch_of(every[:100]), sketch_of(every)).a_in_b is None


@given(seed=st.integers(0, 1000), shared=st.integers(0, 60), only_a=st.integers(0, 60), only_b=st.integers(0, 300))
def test_comparison_is_symmetric(seed: int, shared: int, only_a: int, only_b: int) -> None:
    a, b = map(sketch_of, overlapping(seed, shared, only_a, only_b))
    one, other = compare(a, b), compare(b, a)
    assert (one.resemblance, one.a_in_b, one.b_in_a) == (other.resemblance, other.b_in_a, other.a_in_b)
    assert 0 <= one.resemblance <= 1


def test_vectors_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="expected two MIPs vectors of one length, got 128 and 64"):
        compare(sketch_of(shingles(1, 50)), sketch_of(shingles(1, 50), m=64))


@pytest.mark.parametrize("resemblance", [0.0, 0.6, 0.9])
@pytest.mark.parametrize("s", [1, 2, 8])
def test_packed_sketches_determine_exactly_which_pages_share_a_bucket(resemblance: float, s: int) -> None:
    bands = BandFilter(k=16, s=s)
    met = 0
    for seed in range(40):
        shared = round(400 * resemblance)
        a, b = overlapping(seed, shared, (400 - shared) // 2, (400 - shared) // 2)
        meet = (bands.keys(mips_of(a, M) & KEPT) == bands.keys(mips_of(b, M) & KEPT)).any()
        assert (bands_in_common(sketch_of(a), sketch_of(b), bands) != 0) == meet
        met += meet
    if resemblance == 0.9:
        assert met > 30
    if (resemblance, s) == (0.0, 8):
        assert met == 0


def test_the_bands_of_a_signature_equal_those_of_its_packed_sketch() -> None:
    signatures = Signatures(SignatureOptions(bands=BandFilter(k=64, s=1)))
    base, met = text_of(1, 300), 0
    made = [signatures.of(Page("u", text=" ".join([*base[: 20 * n], *text_of(n + 2, 300)]))) for n in range(12)]
    sketches = [each.sketches for each in made if each.sketches is not None]
    for a, b in combinations(sketches, 2):
        meet = (a.bands == b.bands).any()
        shared = bands_in_common(pack_sketch(a), pack_sketch(b), signatures.choices.bands)
        assert [band for band in range(64) if shared >> band & 1] == (a.bands == b.bands).nonzero()[0].tolist()
        met += meet
    assert 0 < met < 66


# Validation of packed sketches


@given(m=st.integers(0, 20), data=st.data())
def test_a_packed_sketch_has_the_length_in_its_header(m: int, data: st.DataObject) -> None:
    words = data.draw(sketches(m))
    assert is_packed(words, m)
    assert not is_packed(words[:-1], m)
    assert not is_packed(np.append(words, np.uint64(7)), m)


@given(words=sketches(), m=st.integers(0, 2**16).filter(lambda m: m != M))
def test_a_sketch_with_another_number_of_mips_values_is_not_packed(words: NDArray[np.uint64], m: int) -> None:
    assert not is_packed(words, m)


@given(words=sketches(), exponent=st.integers(0, 255))
def test_the_exponent_of_the_modulus_is_less_than_64(words: NDArray[np.uint64], exponent: int) -> None:
    words[0] = words[0] & ~np.uint64(0xFF) | np.uint64(exponent)
    assert is_packed(words, M) == (exponent < 64)
    assert are_packed(words, np.array([words.size]), M) == (exponent < 64)


@given(some=st.lists(sketches(3) | sketches(4) | hnp.arrays(np.uint64, st.integers(0, 3), elements=word), max_size=4))
def test_many_sketches_are_valid_if_each_of_them_is(some: list[NDArray[np.uint64]]) -> None:
    lengths = np.array([each.size for each in some], np.int64)
    words = np.concatenate([np.empty(0, np.uint64), *some])
    assert are_packed(words, lengths, 3) == all(is_packed(each, 3) for each in some)


# Small values are plausible headers of such short arrays; arbitrary 64-bit words rarely are.
@given(words=hnp.arrays(np.uint64, st.integers(0, 3), elements=st.integers(0, 2**12) | word), m=st.integers(0, 16))
def test_any_words_can_be_validated(words: NDArray[np.uint64], m: int) -> None:
    if is_packed(words, m):
        _, values = sample_values(words)
        assert values.size <= words.size - 1

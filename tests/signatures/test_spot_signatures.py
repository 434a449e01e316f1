"""Tests of spot signatures: they cover running text but not navigation, and lengths alone exclude most pairs."""

from hypothesis import given
from hypothesis import strategies as st

from neardup.signatures.spot_signatures import can_resemble, length_partitions, spot_resemblance, spot_signatures
from neardup.text.tokens import tokens_of_text

STORY = (
    "at the rally to kick off a campaign for the primary the senator tried to set the record straight from an attack"
)


def test_navigation_has_no_spots() -> None:
    assert spot_signatures(tokens_of_text("home news sports business travel weather login")).size == 0
    assert spot_signatures(tokens_of_text(STORY)).size > 5


def test_other_navigation_changes_little() -> None:
    bare = spot_signatures(tokens_of_text(STORY))
    framed = spot_signatures(tokens_of_text("home news sports " + STORY + " printable email share"))
    assert spot_resemblance(bare, bare) == 1.0
    assert spot_resemblance(bare, framed) > 0.75
    assert spot_resemblance(bare, spot_signatures(tokens_of_text("the cat is on the mat with a hat and a bat"))) == 0.0


def test_repeats_count() -> None:
    once, twice = (spot_signatures(tokens_of_text("the red fox " * n)) for n in (2, 4))
    assert spot_resemblance(once, twice) < 1


TEXTS = st.lists(st.sampled_from(["the", "of", "red", "fox", "dog", "sea"]), max_size=40).map(" ".join)


@given(TEXTS, TEXTS, st.floats(0.05, 0.95))
def test_the_length_bound_excludes_no_similar_pair(one: str, other: str, threshold: float) -> None:
    a, b = spot_signatures(tokens_of_text(one)), spot_signatures(tokens_of_text(other))
    if spot_resemblance(a, b) >= threshold:
        assert can_resemble(a.size, b.size, threshold)


@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(0.2, 0.95))
def test_only_neighbouring_partitions_can_resemble(a: int, b: int, threshold: float) -> None:
    cuts = length_partitions(3000, threshold)
    places = [max(i for i, cut in enumerate(cuts) if cut <= size) for size in (a, b)]
    if can_resemble(a, b, threshold):
        assert abs(places[0] - places[1]) <= 1

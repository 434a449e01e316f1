"""Bucket tables against a dictionary."""

from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.buckets import BucketTable
from tests.fingerprints import EXAMPLES, words

PAIRS = st.lists(st.tuples(st.sampled_from([0, 1, 2**63, 2**64 - 1, 77]), st.integers(0, 12)), max_size=40)


@settings(max_examples=EXAMPLES)
@given(st.lists(PAIRS, max_size=6), st.integers(1, 9))
def test_a_pair_meets_the_earlier_ones_of_its_bucket(batches: list[list[tuple[int, int]]], common: int) -> None:
    ours = BucketTable(common=common, recent=5)
    twin: dict[int, set[int]] = {}
    ignored = 0
    for batch in batches:
        wanted = []
        for i, (key, fingerprint) in enumerate(batch):
            bucket = twin.setdefault(key, set())
            if len(bucket) >= common:
                ignored += 1
                continue
            wanted += [(i, other) for other in sorted(bucket - {fingerprint})]
            bucket.add(fingerprint)
        found = ours.probe_and_insert(words([key for key, _ in batch]), words([each for _, each in batch]))
        assert list(zip(found.query.tolist(), found.fingerprint.tolist(), strict=True)) == wanted
    assert len(ours) == sum(map(len, twin.values()))
    assert ours.counts.common == ignored


def test_a_forgotten_fingerprint_is_in_no_bucket() -> None:
    ours = BucketTable()
    ours.probe_and_insert(words([1, 2, 2]), words([10, 10, 11]))
    assert ours.forget(10)
    assert not ours.forget(10)
    assert ours.probe_and_insert(words([1, 2]), words([5, 5])).fingerprint.tolist() == [11]

"""Tests of sets of tables and bands: their bits, and their bytes in messages and in the store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.deployment.plan import plan_of
from neardup.index.plan.routing import Routing
from neardup.matching.found_by import NO_TABLE, FoundBy, found_by_table, pack_found_by, unpack_found_by, with_bands
from neardup.settings import Settings


@given(found_by=st.integers(0, 2**300).map(FoundBy))
def test_the_bytes_are_as_short_as_possible_and_are_read_back(found_by: FoundBy) -> None:
    packed = pack_found_by(found_by)
    assert unpack_found_by(packed) == found_by
    assert not packed.endswith(b"\x00")


@pytest.mark.parametrize(("found_by", "packed"), [(NO_TABLE, b""), (FoundBy(5), b"\x05"), (FoundBy(256), b"\x00\x01")])
def test_the_layout_of_the_bytes_does_not_change(found_by: FoundBy, packed: bytes) -> None:
    assert pack_found_by(found_by) == packed


def test_a_bucket_table_is_replaced_by_the_bands_that_two_documents_share() -> None:
    routing = Routing(plan_of(Settings(tables=4, bands="3x4")))
    buckets = found_by_table(4)
    found_by = FoundBy(found_by_table(1) | buckets)
    assert routing.names(with_bands(found_by, 0b101, buckets)) == ("simhash/1", "bands/0", "bands/2")

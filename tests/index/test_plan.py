"""Tests of plans and routing: services agree on them, or the error names the difference."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.deployment.plan import plan_of
from neardup.errors import CorruptState, SettingsError, WrongState
from neardup.index.plan.plan import Plan
from neardup.index.plan.routing import Place, Routing
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions
from tests.support.fingerprints import fingerprints, words
from tests.support.naive import distance

PLAN = Plan(signature_version="1", slice_bits=2, bands=3, band_slice_bits=1)


def test_a_plan_is_read_back_from_its_json() -> None:
    assert Plan.from_json(PLAN.to_json(), "here") == PLAN


def test_an_altered_plan_is_refused() -> None:
    with pytest.raises(CorruptState, match="here: expected digest"):
        Plan.from_json(PLAN.to_json().replace('"slice_bits": 2', '"slice_bits": 3'), "here")
    with pytest.raises(WrongState, match="here: expected 'neardup plan' version 2, got 'neardup plan' version 3"):
        Plan.from_json(PLAN.to_json().replace('"version": 2', '"version": 3'), "here")
    with pytest.raises(CorruptState, match="here: expected a plan, cannot read it"):
        Plan.from_json("{}", "here")


def test_a_mismatch_names_the_fields_that_differ() -> None:
    with pytest.raises(WrongState, match=r"here: expected a plan with slice_bits = 2, got slice_bits = 4"):
        PLAN.require(replace(PLAN, slice_bits=4), "here")


@pytest.mark.parametrize("wrong", [{"slice_bits": 26}, {"k": 8}, {"splits": (3,)}, {"bands": -1}, {"header_bits": 65}])
def test_invalid_fields_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="expected"):
        replace(PLAN, **wrong)


def test_partitions_are_tables_times_slices() -> None:
    assert PLAN.partitions == 10 * 4 + 2
    assert replace(PLAN, bands=0).partitions == 10 * 4
    places = [Routing(PLAN).place_of(number) for number in range(PLAN.partitions)]
    assert len(set(places)) == PLAN.partitions
    assert places[7] == Place(1, 3)
    assert places[41] == Place(None, 1)
    with pytest.raises(ValueError, match="expected a partition from 0 to 41"):
        Routing(PLAN).place_of(42)


@given(fingerprints(10), st.sampled_from([4, 10, 16, 20]), st.integers(0, 16))
def test_fingerprints_with_equal_leading_bits_are_in_one_partition(
    values: list[int], tables: int, slice_bits: int
) -> None:
    plan = Plan.for_tables(tables, signature_version="1", slice_bits=slice_bits)
    routing = Routing(plan)
    keys = [table.keys_of(words(values)) for table in plan.tables]
    partitions = [routing.partitions_of_keys(number, key) for number, key in enumerate(keys)]
    for number, each in enumerate(partitions):
        assert {routing.place_of(int(partition)).table for partition in each} == {number}
    for i, x in enumerate(values):
        for j, y in enumerate(values):
            if distance(x, y) <= 3:
                meets = [
                    each[i] == each[j] and not int((key[i] ^ key[j]) & table.mask)
                    for table, key, each in zip(plan.tables, keys, partitions, strict=True)
                ]
                assert any(meets)


def test_buckets_spread_over_their_slices() -> None:
    routing = Routing(PLAN)
    partitions = routing.partitions_of_buckets(np.arange(1000, dtype=np.uint64))
    assert {*partitions.tolist()} == {*routing.partitions_of_table(None)} == {40, 41}
    assert 300 < (partitions == partitions.min()).sum() < 700


def test_tables_are_named_in_the_order_of_their_partitions() -> None:
    plan = plan_of(Settings(tables=4, slice_bits=1, bands="3x4", band_slice_bits=2))
    routing = Routing(plan)
    assert [routing.table_number(partition) for partition in range(plan.partitions)] == [
        0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4,
    ]  # fmt: skip
    assert routing.names(0b1010001) == ("simhash/0", "bands/0", "bands/2")
    assert routing.names(0) == ()


# From settings


def test_the_settings_determine_the_tables() -> None:
    plan = plan_of(Settings(tables=10, slice_bits=2, bands="18x7", band_slice_bits=1))
    assert (plan.k, len(plan.tables), plan.bands, plan.header_bits) == (3, 10, 18, 0)
    assert plan.partitions == 10 * 4 + 2
    assert plan.signature_version == SignatureOptions().version


def test_without_bands_there_are_only_permuted_tables() -> None:
    assert plan_of(Settings(tables=4, bands="none")).partitions == 4


def test_the_probabilistic_search_has_one_table_with_its_header() -> None:
    plan = plan_of(Settings(search="probabilistic", header_bits=16, hamming=2, bands="none"))
    assert (plan.header_bits, plan.k, plan.partitions, plan.tables[0].leading) == (16, 2, 1, 16)


def test_other_settings_of_tables_or_signatures_make_another_plan() -> None:
    changes: list[dict[str, Any]] = [
        {}, {"tables": 4}, {"hamming": 2}, {"slice_bits": 1}, {"bands": "none"}, {"bands": "8x16"},
        {"band_slice_bits": 2}, {"shingle_words": 4}, {"search": "probabilistic"},
    ]  # fmt: skip
    assert len({plan_of(Settings(**each)).digest for each in changes}) == len(changes)
    assert plan_of(Settings(owners=7, near_resemblance=0.5)).digest == plan_of(Settings()).digest


def test_settings_without_a_valid_plan_are_refused() -> None:
    with pytest.raises(SettingsError, match="slice bits"):
        plan_of(Settings(tables=20, slice_bits=16, hamming=7))
    with pytest.raises(SettingsError, match="expected k·s to be at most m = 128"):
        plan_of(Settings(bands="20x8"))

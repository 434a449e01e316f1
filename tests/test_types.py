"""Names of documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.types import DocumentId


@given(st.integers(0, 2**31), st.integers(0, 2**62))
def test_a_name_is_parsed_into_partition_and_offset(partition: int, offset: int) -> None:
    assert DocumentId.parse(str(DocumentId(7, partition, offset))) == (partition, offset)


@pytest.mark.parametrize("name", ["", ":", "1", "1:", ":2", "a:2", "1:b", "-1:2", "1:2:3", " 1:2", "1:2.0"])
def test_any_other_text_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected partition:offset, got"):
        DocumentId.parse(name)

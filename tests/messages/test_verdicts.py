import json
from dataclasses import fields
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.messages.verdicts import MatchFields, VerdictFields, read_verdict, write_verdict
from neardup.types import Kind, PageRef, Relation, Verdict

utf8 = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
references = st.none() | st.builds(PageRef, url=utf8, document=utf8)
finite = st.none() | st.floats(allow_nan=False, allow_infinity=False)
verdicts = st.builds(
    Verdict,
    url=utf8,
    document=utf8,
    fetched_at=st.none() | utf8,
    verdict=st.sampled_from(Kind),
    revision=st.integers(0, 2**31),
    duplicate_of=references,
    relation=st.none() | st.sampled_from(Relation),
    same_url=st.booleans(),
    hamming=st.none() | st.integers(0, 64),
    resemblance=finite,
    containment=finite,
    found_by=st.lists(utf8, max_size=3).map(tuple),
    first_of_group=references,
    reason=st.none() | utf8,
    signature_version=utf8,
    latency_ms=finite,
)

FORMS = ("json", "msgpack")

DUPLICATE = Verdict(
    url="https://example.org/é",
    document="0:1",
    fetched_at=None,
    verdict=Kind.DUPLICATE,
    revision=1,
    duplicate_of=PageRef("https://example.org/", "0:0"),
    relation=Relation.IDENTICAL,
    found_by=("table-3",),
    first_of_group=PageRef("https://example.org/", "0:0"),
    signature_version="v1",
    latency_ms=1.5,
)


def raw(verdict: Verdict, form: str) -> dict[str, Any]:
    """Return the fields as another program reads them."""
    value = write_verdict(verdict, form)
    seen: dict[str, Any] = json.loads(value) if form == "json" else msgpack.unpackb(value)
    return seen


@pytest.mark.parametrize("form", FORMS)
@given(verdict=verdicts)
def test_a_verdict_is_read_back_unchanged(form: str, verdict: Verdict) -> None:
    got = read_verdict(write_verdict(verdict, form))
    assert got == verdict
    # StrEnum members equal plain strings, so compare the types too.
    assert isinstance(got.verdict, Kind)
    assert got.relation is None or isinstance(got.relation, Relation)
    assert isinstance(got.found_by, tuple)


@pytest.mark.parametrize("form", FORMS)
@given(verdict=verdicts)
def test_the_keys_are_the_fields_of_a_verdict(form: str, verdict: Verdict) -> None:
    assert list(raw(verdict, form)) == [each.name for each in fields(Verdict)]


def test_the_typed_fields_are_the_fields_of_a_verdict_in_order() -> None:
    names = [each.name for each in fields(Verdict)]
    assert list(VerdictFields.__annotations__) == names
    first = names.index("duplicate_of")
    assert list(MatchFields.__annotations__) == names[first : first + len(MatchFields.__annotations__)]


@pytest.mark.parametrize("form", FORMS)
def test_another_program_reads_plain_values(form: str) -> None:
    reference = {"url": "https://example.org/", "document": "0:0"}
    assert raw(DUPLICATE, form) == {
        "url": "https://example.org/é", "document": "0:1", "fetched_at": None, "verdict": "duplicate", "revision": 1,
        "duplicate_of": reference, "relation": "identical", "same_url": False, "hamming": None, "resemblance": None,
        "containment": None, "found_by": ["table-3"], "first_of_group": reference, "reason": None,
        "signature_version": "v1", "latency_ms": 1.5,
    }  # fmt: skip


def test_json_is_one_compact_line_of_utf8() -> None:
    text = write_verdict(DUPLICATE, "json").decode()
    assert text.startswith('{"url":"https://example.org/é","document":"0:1",')
    assert "\n" not in text


@pytest.mark.parametrize(
    "value", [b"", b"{", b"{}", b"\x80", b"\xc1", b"words", b"\x90", json.dumps({"verdict": "unique"}).encode()]
)
def test_a_foreign_value_is_not_a_verdict(value: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_verdict(value)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "value"), [("verdict", "maybe"), ("relation", "cousin"), ("extra", 1)])
def test_an_unknown_word_is_not_a_verdict(form: str, name: str, value: Any) -> None:
    altered = raw(DUPLICATE, form) | {name: value}
    with pytest.raises((ValueError, TypeError)):
        read_verdict(json.dumps(altered).encode() if form == "json" else msgpack.packb(altered))

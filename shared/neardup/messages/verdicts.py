"""Verdicts on the wire: JSON by default, msgpack by setting. The keys are the fields of `types.Verdict`, in order.

An aggregator writes one verdict per page. It builds the fields as a dictionary (`VerdictFields`), because a `Verdict`
object would cost more than the encoding.
"""

from operator import attrgetter
from typing import Any, Final, TypedDict, cast

import msgpack
import orjson

from neardup.types import Kind, PageRef, Relation, Verdict

_values: Final = attrgetter(*Verdict.__slots__)


class PageFields(TypedDict):
    """The fields of a `types.PageRef`."""

    url: str
    document: str


class MatchFields(TypedDict):
    """The fields of a verdict that describe the match: the earlier page and the comparison with it."""

    duplicate_of: PageFields | None
    relation: Relation | None
    same_url: bool
    hamming: int | None
    resemblance: float | None
    containment: float | None
    found_by: tuple[str, ...]
    first_of_group: PageFields | None


class VerdictFields(TypedDict):
    """The fields of a `types.Verdict`. The order of the keys is the order on the wire."""

    url: str
    document: str
    fetched_at: str | None
    verdict: Kind
    revision: int
    duplicate_of: PageFields | None
    relation: Relation | None
    same_url: bool
    hamming: int | None
    resemblance: float | None
    containment: float | None
    found_by: tuple[str, ...]
    first_of_group: PageFields | None
    reason: str | None
    signature_version: str
    latency_ms: float | None


def write_verdict(verdict: Verdict, form: str) -> bytes:
    """Encode a verdict for the verdicts topic; `form` is "json" or "msgpack"."""
    fields: dict[str, Any] = dict(zip(Verdict.__slots__, _values(verdict), strict=True))
    for name in ("duplicate_of", "first_of_group"):
        reference = fields[name]
        fields[name] = None if reference is None else {"url": reference.url, "document": reference.document}
    return write_fields(cast(VerdictFields, fields), form)


def write_fields(fields: VerdictFields, form: str) -> bytes:
    """Encode the fields of a verdict; `form` is "json" or "msgpack"."""
    if form == "msgpack":
        packed: bytes = msgpack.packb(fields)
        return packed
    return orjson.dumps(fields)


def read_verdict(value: bytes) -> Verdict:
    """Decode a verdict in either form. Raises ValueError, KeyError or TypeError for any other value."""
    fields: dict[str, Any] = orjson.loads(value) if value[:1] == b"{" else msgpack.unpackb(value)
    for name in ("duplicate_of", "first_of_group"):
        if fields[name] is not None:
            fields[name] = PageRef(**fields[name])
    fields["verdict"] = Kind(fields["verdict"])
    fields["relation"] = None if fields["relation"] is None else Relation(fields["relation"])
    fields["found_by"] = tuple(fields["found_by"])
    return Verdict(**fields)

"""A verdict on the wire: JSON by default, msgpack by setting. The keys are the fields of `types.Verdict`.

Who writes one for every page may write the fields themselves, and needs no `Verdict`.
"""

from operator import attrgetter
from typing import Any, Final

import msgpack
import orjson

from neardup.types import Kind, PageRef, Relation, Verdict

_values: Final = attrgetter(*Verdict.__slots__)


def write_verdict(verdict: Verdict, form: str) -> bytes:
    """Encode for the verdicts topic; `form` is "json" or "msgpack"."""
    fields: dict[str, Any] = dict(zip(Verdict.__slots__, _values(verdict), strict=True))
    for name in ("duplicate_of", "first_of_group"):
        reference = fields[name]
        fields[name] = None if reference is None else {"url": reference.url, "document": reference.document}
    return write_fields(fields, form)


def write_fields(fields: dict[str, Any], form: str) -> bytes:
    """The same from all fields of a verdict, in their order; a page that it points at is a map of its two."""
    if form == "msgpack":
        packed: bytes = msgpack.packb(fields)
        return packed
    return orjson.dumps(fields)


def read_verdict(value: bytes) -> Verdict:
    """Decode either form. Raises ValueError, KeyError or TypeError if it is neither."""
    fields: dict[str, Any] = orjson.loads(value) if value[:1] == b"{" else msgpack.unpackb(value)
    for name in ("duplicate_of", "first_of_group"):
        if fields[name] is not None:
            fields[name] = PageRef(**fields[name])
    fields["verdict"] = Kind(fields["verdict"])
    fields["relation"] = None if fields["relation"] is None else Relation(fields["relation"])
    fields["found_by"] = tuple(fields["found_by"])
    return Verdict(**fields)

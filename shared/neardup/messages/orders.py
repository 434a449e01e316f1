"""Operators' orders to all owners: forget a url, or forget every page older than a given time.

Orders travel through the inboxes like every other message. Shards receive no orders. They store only fingerprints,
which lead to no page once the owner has forgotten the documents, and which expire after the time to live. Owners report
the documents that they have forgotten to the offline pass (see `forgotten`).
"""

from dataclasses import dataclass
from typing import Final

from neardup.errors import Corrupt
from neardup.log import Output
from neardup.messages import wire
from neardup.messages.formats import Format
from neardup.messages.wire import Body, Schema

_SCHEMA: Final = Schema("control", 1)


@dataclass(frozen=True, slots=True)
class Forget:
    """An order to forget every document of a url."""

    url: str


@dataclass(frozen=True, slots=True)
class Expire:
    """An order to forget every document whose page has a timestamp below `before`, in milliseconds."""

    before: int


def orders(order: Forget | Expire, inbox: str, owners: int) -> list[Output]:
    """Return one message per owner. An order names no fingerprint, so any owner may have documents to forget."""
    body = {"forget": order.url} if isinstance(order, Forget) else {"expire": order.before}
    return [Output(inbox, owner, None, wire.encode(_SCHEMA, body)) for owner in range(owners)]


def read_order(body: Body) -> Forget | Expire:
    """Read the body of a message. Raises Corrupt."""
    match body:
        case {"forget": str(url)}:
            return Forget(url)
        case {"expire": int(before)}:
            return Expire(before)
    raise Corrupt(f"expected an order to forget a url or to expire, got {sorted(body)}")


ORDERS: Final = Format(_SCHEMA, lambda body, _: read_order(body), needs_plan=False)

"""Orders to all owners, in their inboxes like everything else: forget a url, forget what is old.

Shards hold fingerprints alone, which name nobody once their owner has forgotten the documents; with a time to live they
drop them by themselves. Owners tell the offline pass what they have forgotten (`forgotten`).
"""

from typing import Any, NamedTuple

from neardup.errors import Corrupt
from neardup.log import Output
from neardup.messages import wire


class Forget(NamedTuple):
    """Forget every document of this url."""

    url: str


class Expire(NamedTuple):
    """Forget every document whose page came before this time, in milliseconds."""

    before: int


def orders(order: Forget | Expire, inbox: str, owners: int) -> list[Output]:
    """The order for every owner: only the one who holds a url knows that it does."""
    body = {"forget": order.url} if isinstance(order, Forget) else {"expire": order.before}
    return [Output(inbox, owner, None, wire.encode("control", body)) for owner in range(owners)]


def read_order(body: dict[str, Any]) -> Forget | Expire:
    """The body of a message. Raises Corrupt."""
    match body:
        case {"forget": str(url)}:
            return Forget(url)
        case {"expire": int(before)}:
            return Expire(before)
    raise Corrupt(f"expected an order to forget a url or to expire, got {sorted(body)}")

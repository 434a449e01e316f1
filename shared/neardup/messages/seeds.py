"""Seeds: the state of a shard partition or an owner before a resharding, as the first records of its new log.

Seeds keep the state rebuildable from the log: a worker with an empty directory reads the seeds and then the records
after them. The old log ends with a `retired` record, which stops its readers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt, Retired
from neardup.messages import wire
from neardup.messages.document_columns import split
from neardup.messages.fields import is_word_array
from neardup.messages.formats import Format
from neardup.messages.wire import Body, Schema

RETIRED_SCHEMA: Final = Schema("retired", 1)
_KEYS_SCHEMA: Final = Schema("seed-keys", 1)
_ENTRIES_SCHEMA: Final = Schema("seed-entries", 1)


@dataclass(frozen=True, slots=True)
class SeedKeys:
    """Fingerprints of a shard partition; those of a bucket table have bucket keys.

    `timestamp` is their insertion time in milliseconds, from which they expire.
    """

    timestamp: int
    fingerprints: NDArray[np.uint64]
    keys: NDArray[np.uint64] | None = None


class Entry(NamedTuple):
    """One entry of an owner's directory, with the key and value that it has in the store."""

    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class SeedEntries:
    """Entries of an owner's directory; `layout` is the version of the store that they come from."""

    layout: int
    entries: list[Entry]


def write_seed_keys(seed: SeedKeys, plan: str) -> bytes:
    """Encode a message to one shard partition; `plan` is the digest of the new plan."""
    body: Body = {"plan": plan, "timestamp": seed.timestamp, "fingerprint": seed.fingerprints}
    if seed.keys is not None:
        body["key"] = seed.keys
    return wire.encode(_KEYS_SCHEMA, body)


def read_seed_keys(body: Body) -> SeedKeys:
    """Read the body of a message. Raises Corrupt."""
    timestamp, fingerprints, keys = body.get("timestamp"), body.get("fingerprint"), body.get("key")
    if not isinstance(timestamp, int) or timestamp not in range(2**63) or not is_word_array(fingerprints):
        raise Corrupt(f"expected a timestamp and fingerprints, got {sorted(body)}")
    if keys is not None and (not is_word_array(keys) or keys.size != fingerprints.size):
        raise Corrupt(f"expected {fingerprints.size} bucket keys, got {sorted(body)}")
    return SeedKeys(timestamp, fingerprints, keys)


def write_seed_entries(entries: Sequence[Entry], layout: int, plan: str) -> Iterator[bytes]:
    """Yield messages of about 512 KB to one owner; `layout` is the version of the directory's store."""
    for some in split(entries, lambda entry: 16 + len(entry.key) + len(entry.value)):
        yield wire.encode(_ENTRIES_SCHEMA, {"plan": plan, "layout": layout, "entries": [list(each) for each in some]})


def read_seed_entries(body: Body) -> SeedEntries:
    """Read the body of a message; keys and values may be any bytes. Raises Corrupt."""
    layout, rows = body.get("layout"), body.get("entries")
    if not isinstance(layout, int) or not isinstance(rows, list):
        raise Corrupt(f"expected a layout and entries of a directory, got {sorted(body)}")
    entries = []
    for row in rows:
        match row:
            case [bytes(key), bytes(value)]:
                entries.append(Entry(key, value))
            case _:
                raise Corrupt(f"expected a key and a value, got {row!r}")
    return SeedEntries(layout, entries)


def write_retired(generation: int) -> bytes:
    """Encode the last message of a partition; `generation` is the generation that replaces it."""
    return wire.encode(RETIRED_SCHEMA, {"generation": generation})


def stop_at_retired(body: Body, generation: int) -> NoReturn:
    """Raise Retired for a reader of `generation`, or Corrupt if the message does not name the next generation."""
    got = body.get("generation")
    if not isinstance(got, int) or got != generation + 1:
        raise Corrupt(f"expected generation {generation + 1} as the next one, got {got!r}")
    raise Retired(
        f"expected messages, got the end of this log: the deployment was resharded. Start the services with "
        f"NEARDUP_GENERATION={generation + 1} and the settings that `neardup reshard` printed"
    )


SEED_KEYS: Final = Format(_KEYS_SCHEMA, lambda body, _: read_seed_keys(body))
SEED_ENTRIES: Final = Format(_ENTRIES_SCHEMA, lambda body, _: read_seed_entries(body))
RETIRED: Final = Format(
    RETIRED_SCHEMA, lambda body, context: stop_at_retired(body, context.generation), needs_plan=False
)

"""Seeds: what a shard partition or an owner knew before a resharding, as the first records of its new log.

So state stays a cache of the log: who starts with an empty directory reads the seeds and then what came after them.
The log that they were taken from ends with a record that says so, and stops whoever reads it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt, Retired, WrongVersion
from neardup.messages import wire
from neardup.messages.document_columns import split
from neardup.messages.fields import require_plan

RETIRED: Final = "retired"


@dataclass(frozen=True, slots=True)
class SeedKeys:
    """Fingerprints that a shard partition holds, in bucket tables with their keys, as of a time in milliseconds."""

    timestamp: int
    fingerprints: NDArray[np.uint64]
    keys: NDArray[np.uint64] | None = None


class Entry(NamedTuple):
    """One entry of an owner's directory, as its store has it."""

    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class SeedEntries:
    """Some of what an owner knows."""

    entries: list[Entry]


def write_seed_keys(seed: SeedKeys, plan: str) -> bytes:
    """A message for one shard partition; `plan` is the digest of the new plan."""
    body: dict[str, Any] = {"plan": plan, "timestamp": seed.timestamp, "fingerprint": seed.fingerprints}
    if seed.keys is not None:
        body["key"] = seed.keys
    return wire.encode("seed-keys", body)


def read_seed_keys(body: dict[str, Any], plan: str) -> SeedKeys:
    """The body of a message. Raises WrongPlan and Corrupt."""
    require_plan(body, plan)
    timestamp, fingerprints, keys = body.get("timestamp"), body.get("fingerprint"), body.get("key")
    if not isinstance(timestamp, int) or timestamp not in range(2**63) or not _are_words(fingerprints):
        raise Corrupt(f"expected a timestamp and fingerprints, got {sorted(body)}")
    if keys is not None and (not _are_words(keys) or keys.size != fingerprints.size):
        raise Corrupt(f"expected {fingerprints.size} bucket keys, got {sorted(body)}")
    return SeedKeys(timestamp, fingerprints, keys)


def write_seed_entries(entries: Sequence[Entry], layout: int, plan: str) -> Iterator[bytes]:
    """Messages for one owner, each about 512 KB at most; `layout` is the version of the directory's store."""
    for some in split(entries, lambda entry: 16 + len(entry.key) + len(entry.value)):
        yield wire.encode("seed-entries", {"plan": plan, "layout": layout, "entries": [list(each) for each in some]})


def read_seed_entries(body: dict[str, Any], layout: int, check: Callable[[Entry], None]) -> SeedEntries:
    """The body of a message. Raises Corrupt, also from `check`, or WrongVersion for entries of another layout."""
    got = body.get("layout")
    if not isinstance(got, int) or got != layout:
        raise WrongVersion(f"expected directory entries of layout {layout}, got {got!r}")
    rows = body.get("entries")
    if not isinstance(rows, list):
        raise Corrupt(f"expected entries of a directory, got {sorted(body)}")
    found = []
    for row in rows:
        match row:
            case [bytes(key), bytes(value)]:
                found.append(Entry(key, value))
                check(found[-1])
            case _:
                raise Corrupt(f"expected a key and a value, got {row!r}")
    return SeedEntries(found)


def write_retired(generation: int) -> bytes:
    """The last message of a partition; the deployment goes on in this generation."""
    return wire.encode(RETIRED, {"generation": generation})


def stop_at_retired(body: dict[str, Any], generation: int) -> None:
    """Raise Retired for who works in this generation; Corrupt when another one is said to come after it."""
    said = body.get("generation")
    if not isinstance(said, int) or said != generation + 1:
        raise Corrupt(f"expected that generation {generation + 1} goes on, got {said!r}")
    raise Retired(
        f"expected messages, got the end of this log: the deployment was resharded and goes on with "
        f"NEARDUP_GENERATION={generation + 1} and the settings that `neardup reshard` said"
    )


def _are_words(value: Any) -> TypeGuard[NDArray[np.uint64]]:
    return isinstance(value, np.ndarray) and value.dtype == np.uint64 and value.ndim == 1

"""The plan: which tables there are and how they are sliced. Every service of a deployment must have the same one.

It travels in a file, next to the topics that were created from it, and in every snapshot as its digest. Two plans are
the same when their digests are; when they are not, the error says which fields differ.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from neardup.errors import CorruptState, SettingsError, WrongState
from neardup.index.plan.design import Design, longest_leading
from neardup.index.plan.table import BITS, Table

MAGIC: Final = "neardup plan"
VERSION: Final = 2
"""Goes up when the same fields come to mean other partitions."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the fingerprint tables are. Raises SettingsError when the fields do not fit together.

    `splits` are the blocks at each level of the exact search; `header_bits` above 0 takes one PSM table with that
    header instead. A table has 2^slice_bits slices. The buckets of all `bands` stand after them, in 2^band_slice_bits
    slices.
    """

    signature_version: str
    k: int = 3
    splits: tuple[int, ...] = (5,)
    header_bits: int = 0
    slice_bits: int = 0
    bands: int = 0
    band_slice_bits: int = 0

    def __post_init__(self) -> None:
        try:
            design = Design(self.k, self.splits)
        except ValueError as error:
            raise SettingsError(f"plan: {error}") from error
        least = self.header_bits or design.least_leading
        if not 0 <= self.header_bits <= BITS:
            raise SettingsError(f"plan: expected 0 to {BITS} header bits, got {self.header_bits}")
        if not 0 <= self.slice_bits <= least:
            raise SettingsError(
                f"plan: expected 0 to {least} slice bits, the least p_i, got {self.slice_bits}; with more, two "
                "fingerprints that should meet are in different slices"
            )
        if self.bands < 0 or not 0 <= self.band_slice_bits <= 16:
            raise SettingsError(f"plan: expected bands >= 0 and 0 to 16 band slice bits, got {self}")

    @classmethod
    def for_tables(cls, tables: int, *, signature_version: str, k: int = 3, **others: Any) -> "Plan":
        """The exact search with the largest p_i for at most this many tables."""
        return cls(signature_version=signature_version, k=k, splits=longest_leading(k, tables).splits, **others)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The permuted tables, or the one table of PSM."""
        return (Table.plain(self.header_bits),) if self.header_bits else Design(self.k, self.splits).tables()

    @property
    def partitions(self) -> int:
        """Shard partitions: tables times slices, and the slices of the buckets."""
        return (len(self.tables) << self.slice_bits) + ((self.bands > 0) << self.band_slice_bits)

    @cached_property
    def digest(self) -> str:
        """Names the plan in snapshots and file names."""
        return hashlib.sha256(_canonical({"version": VERSION, **asdict(self)})).hexdigest()[:32]

    def require(self, other: "Plan", where: str) -> None:
        """Raise WrongState unless `other`, found at `where`, is this plan."""
        if other == self:
            return
        differing = [each.name for each in fields(self) if getattr(self, each.name) != getattr(other, each.name)]
        expected = ", ".join(f"{name} = {getattr(self, name)!r}" for name in differing)
        got = ", ".join(f"{name} = {getattr(other, name)!r}" for name in differing)
        raise WrongState(f"{where}: expected a plan with {expected}, got {got}; use the plan the topics were made with")

    def to_json(self) -> str:
        """What `save` writes."""
        body = {"magic": MAGIC, "version": VERSION, "plan": asdict(self), "digest": self.digest}
        return json.dumps(body, indent=1) + "\n"

    def save(self, path: Path) -> None:
        """Write the file beside and rename it."""
        beside = path.with_name(path.name + ".new")
        beside.write_text(self.to_json())
        os.replace(beside, path)

    @classmethod
    def from_json(cls, text: str, where: str) -> "Plan":
        """Read what `to_json` made. Raises CorruptState, or WrongState for another version."""
        try:
            body = json.loads(text)
            magic, version, values, digest = body["magic"], body["version"], body["plan"], body["digest"]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptState(f"{where}: expected a plan file, cannot read it: {error!r}") from error
        if magic != MAGIC or version != VERSION:
            raise WrongState(f"{where}: expected {MAGIC!r} version {VERSION}, got {magic!r} version {version!r}")
        try:
            plan = cls(**{**values, "splits": tuple(values["splits"])})
        except (TypeError, KeyError, SettingsError) as error:
            raise CorruptState(f"{where}: expected the fields of a plan, got {values!r}: {error}") from error
        if plan.digest != digest:
            raise CorruptState(f"{where}: expected digest {plan.digest}, got {digest!r}; the file was altered")
        return plan

    @classmethod
    def load(cls, path: Path) -> "Plan":
        """Read the file. Raises WrongState or CorruptState."""
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise CorruptState(f"{path}: expected a plan file, cannot read it: {error}") from error
        return cls.from_json(text, str(path))


def _canonical(values: dict[str, Any]) -> bytes:
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()

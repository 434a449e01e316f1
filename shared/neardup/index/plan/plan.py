"""The plan of an index: its tables and their slices. All services of a deployment must have the same plan.

Each service derives the plan from its settings. Snapshots contain the plan, and messages contain its digest, so that
state and messages of another plan are rejected. The error names the fields that differ.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Final

from neardup.errors import CorruptState, SettingsError, WrongState
from neardup.index.plan.design import Design, longest_leading
from neardup.index.plan.table import BITS, Table

MAGIC: Final = "neardup plan"
VERSION: Final = 2
"""Version of the meaning of the fields. It is incremented when the same fields would give other partitions."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The tables of an index and their slices. Raises SettingsError if the fields do not fit together.

    `splits` has the number of blocks at each level of the exact search. If `header_bits` is above 0, there is one PSM
    table with that header instead. A table has 2^slice_bits slices. The buckets of all `bands` are in 2^band_slice_bits
    further slices.
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
        """Return the plan of the exact search with at most `tables` tables and the largest possible p_i."""
        return cls(signature_version=signature_version, k=k, splits=longest_leading(k, tables).splits, **others)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The permuted tables, or the one table of PSM."""
        return (Table.plain(self.header_bits),) if self.header_bits else Design(self.k, self.splits).tables()

    @property
    def partitions(self) -> int:
        """Number of shard partitions: tables times slices, plus the slices of the buckets."""
        return (len(self.tables) << self.slice_bits) + ((self.bands > 0) << self.band_slice_bits)

    @cached_property
    def digest(self) -> str:
        """The digest that identifies the plan in snapshots, messages and file names."""
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
        """Return the plan as JSON, with its digest, for snapshots."""
        body = {"magic": MAGIC, "version": VERSION, "plan": asdict(self), "digest": self.digest}
        return json.dumps(body, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> "Plan":
        """Read the JSON of `to_json`, found at `where`. Raises CorruptState, or WrongState for another version."""
        try:
            body = json.loads(text)
            magic, version, values, digest = body["magic"], body["version"], body["plan"], body["digest"]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptState(f"{where}: expected a plan, cannot read it: {error!r}") from error
        if magic != MAGIC or version != VERSION:
            raise WrongState(f"{where}: expected {MAGIC!r} version {VERSION}, got {magic!r} version {version!r}")
        try:
            plan = cls(**{**values, "splits": tuple(values["splits"])})
        except (TypeError, KeyError, SettingsError) as error:
            raise CorruptState(f"{where}: expected the fields of a plan, got {values!r}: {error}") from error
        if plan.digest != digest:
            raise CorruptState(f"{where}: expected digest {plan.digest}, got {digest!r}; the file was altered")
        return plan


def _canonical(values: dict[str, Any]) -> bytes:
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()

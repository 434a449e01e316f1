"""Snapshots of slices and bucket tables: their contents with the plan, the signature version and the offset.

Runs are immutable, so freezing a table references its runs and copies only its newest entries. The table accepts
inserts while the snapshot is written.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import WrongState
from neardup.index.buckets.table import BucketTable
from neardup.index.plan.plan import Plan
from neardup.index.slices.codecs import Codec, codec_of, run_from_parts
from neardup.index.slices.slice import Slice
from neardup.util import array_file

MAGIC: Final = b"NDSLICE\x00"
VERSION: Final = 3
"""Version of the file format. Files of another version are rejected. Delete them, and the log rebuilds the state."""


class Frozen(NamedTuple):
    """The contents of a table at one moment. It keeps its runs in memory even if the table merges them meanwhile."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def write(self, path: Path) -> None:
        """Write the snapshot and wait until it is on the disk. May be called in any thread."""
        array_file.write(path, magic=MAGIC, version=VERSION, about=self.about, arrays=self.arrays)


def freeze_slice(kept: Slice, *, plan: Plan, partition: int, offset: int) -> Frozen:
    """Return the contents of a slice, with the offset of the log up to which it has read."""
    arrays: dict[str, NDArray[Any]] = {"tail": kept.tail.copy()}
    runs = []
    for number, run in enumerate(kept.runs):
        runs.append({"codec": codec_of(run), "epoch": run.epoch, "parts": list(run.parts())})
        arrays |= {f"{number}/{name}": np.ascontiguousarray(part) for name, part in run.parts().items()}
    about = _about(plan, partition, offset) | {
        "kind": "slice",
        "epoch": kept.epoch,
        "skip": kept.skip,
        "runs": runs,
        "keys": len(kept),
    }
    return Frozen(about, arrays)


def load_slice(path: Path, into: Slice, *, plan: Plan, partition: int) -> int:
    """Fill the slice from a file and return the offset.

    Raises WrongState, CorruptState, or OSError if there is no file.
    """
    about, arrays = array_file.read(path, magic=MAGIC, version=VERSION)
    _require(path, about, plan, partition, "slice")
    runs = [
        run_from_parts(
            Codec(run["codec"]),
            {name: arrays[f"{number}/{name}"] for name in run["parts"]},
            skip=about["skip"],
            epoch=run["epoch"],
        )
        for number, run in enumerate(about["runs"])
    ]
    into.restore(runs, arrays["tail"], about["epoch"])
    return int(about["offset"])


def freeze_buckets(kept: BucketTable, *, plan: Plan, partition: int, offset: int) -> Frozen:
    """Return the contents of a bucket table, as `freeze_slice` does."""
    arrays, more = kept.parts()
    about = _about(plan, partition, offset) | {"kind": "buckets", "table": more, "keys": len(kept)}
    return Frozen(about, arrays)


def load_buckets(path: Path, into: BucketTable, *, plan: Plan, partition: int) -> int:
    """Fill the bucket table from a file, as `load_slice` does."""
    about, arrays = array_file.read(path, magic=MAGIC, version=VERSION)
    _require(path, about, plan, partition, "buckets")
    into.restore(arrays, about["table"])
    return int(about["offset"])


def read_about(path: Path) -> dict[str, Any]:
    """Return the header of a snapshot without reading its keys. Raises WrongState, CorruptState, or OSError."""
    return array_file.read_about(path, magic=MAGIC, version=VERSION)


def _about(plan: Plan, partition: int, offset: int) -> dict[str, Any]:
    return {
        "plan": plan.to_json(), "partition": partition, "signature_version": plan.signature_version, "offset": offset,
    }  # fmt: skip


def _require(path: Path, about: dict[str, Any], plan: Plan, partition: int, kind: str) -> None:
    plan.require(Plan.from_json(about["plan"], str(path)), str(path))
    if about["partition"] != partition or about["kind"] != kind:
        raise WrongState(
            f"{path}: expected {kind} of partition {partition}, got {about['kind']} of partition {about['partition']}"
        )

"""A frozen table of inverse document frequencies.

The IDF of a term changes as the collection changes (Manku 2007 §5.3), but fingerprints must not change. The table is
therefore a file, created once from a sample, and its checksum is part of the signature version.
"""

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import xxhash
from numpy.typing import NDArray

from neardup.errors import SettingsError
from neardup.kernels.signatures.shingling import places

VERSION: Final = 1
"""Version of the file format. Files of another version are rejected."""

ONE: Final = 256
"""The weight 1.0. Weights are integers in units of 1/256, so their sums are the same on every machine."""


@dataclass(frozen=True, slots=True)
class IdfTable:
    """Sorted feature hashes with their weights, and the weight of features that are not in the sample."""

    hashes: NDArray[np.uint64]
    weights: NDArray[np.int64]
    unseen: int

    @classmethod
    def of(cls, documents: Iterable[NDArray[np.uint64]], *, least: int = 2) -> "IdfTable":
        """Return the table of a sample. Features that occur in fewer than `least` documents are left out."""
        collected = [np.unique(document) for document in documents]
        total = max(len(collected), 1)
        joined = np.concatenate(collected) if collected else np.zeros(0, dtype=np.uint64)
        hashes, counts = np.unique(joined, return_counts=True)
        kept = counts >= least
        weights = np.rint(np.log2(1 + total / counts[kept]) * ONE).astype(np.int64)
        return cls(hashes[kept], weights, int(np.rint(np.log2(1 + total) * ONE)))

    def weigh(self, features: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the weight of each feature in units of 1/256."""
        place = places(self.hashes, features)
        if not self.hashes.size:
            return np.full(features.size, self.unseen, dtype=np.int64)
        return np.where(place < 0, self.unseen, self.weights[place])

    @property
    def checksum(self) -> str:
        """The checksum that identifies the table in a signature version."""
        parts = (self.hashes.astype("<u8"), self.weights.astype("<i8"), np.array([self.unseen], dtype="<i8"))
        return xxhash.xxh64_hexdigest(b"".join(part.tobytes() for part in parts))

    def save(self, path: Path) -> None:
        """Write the file. Raises OSError."""
        np.savez_compressed(path, version=VERSION, hashes=self.hashes, weights=self.weights, unseen=self.unseen)

    @classmethod
    def load(cls, path: Path) -> "IdfTable":
        """Read the file. Raises SettingsError if it cannot be read, is not a table, or has another version."""
        try:
            with np.load(path) as stored:
                version = int(stored["version"])
                table = cls(
                    stored["hashes"].astype(np.uint64), stored["weights"].astype(np.int64), int(stored["unseen"])
                )
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise SettingsError(f"expected a tf-idf table, cannot read {path}: {error}") from error
        if version != VERSION:
            raise SettingsError(f"{path}: expected a tf-idf table of version {VERSION}, got {version}; make it again")
        return table

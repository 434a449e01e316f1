"""A frozen table of inverse document frequencies.

Manku 2007 §5.3 warns that a term's IDF changes as the collection does; a fingerprint must not. So the table is a file,
made once from a sample, and its checksum is part of the signature version.
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
"""Goes up when the meaning of the file changes; another version is refused."""

ONE: Final = 256
"""Weights are whole numbers of 256ths: sums of them are the same on every machine."""


@dataclass(frozen=True, slots=True)
class IdfTable:
    """Sorted feature hashes, their weights, and the weight of a feature that the sample did not have."""

    hashes: NDArray[np.uint64]
    weights: NDArray[np.int64]
    unseen: int

    @classmethod
    def of(cls, documents: Iterable[NDArray[np.uint64]], *, least: int = 2) -> "IdfTable":
        """Count in how many documents each feature occurs; forget those in fewer than `least`."""
        collected = [np.unique(document) for document in documents]
        total = max(len(collected), 1)
        joined = np.concatenate(collected) if collected else np.zeros(0, dtype=np.uint64)
        hashes, counts = np.unique(joined, return_counts=True)
        kept = counts >= least
        weights = np.rint(np.log2(1 + total / counts[kept]) * ONE).astype(np.int64)
        return cls(hashes[kept], weights, int(np.rint(np.log2(1 + total) * ONE)))

    def weigh(self, features: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The weight of each feature, in 256ths."""
        place = places(self.hashes, features)
        if not self.hashes.size:
            return np.full(features.size, self.unseen, dtype=np.int64)
        return np.where(place < 0, self.unseen, self.weights[place])

    @property
    def checksum(self) -> str:
        """Names the table in a signature version."""
        parts = (self.hashes.astype("<u8"), self.weights.astype("<i8"), np.array([self.unseen], dtype="<i8"))
        return xxhash.xxh64_hexdigest(b"".join(part.tobytes() for part in parts))

    def save(self, path: Path) -> None:
        """Write the file. Raises OSError."""
        np.savez_compressed(path, version=VERSION, hashes=self.hashes, weights=self.weights, unseen=self.unseen)

    @classmethod
    def load(cls, path: Path) -> "IdfTable":
        """Read the file. Raises SettingsError if it is not one."""
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

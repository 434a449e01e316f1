"""Tests of batch search against a comparison of all pairs."""

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.errors import CorruptState, WrongState
from neardup.index.batch import search as batch
from neardup.index.batch.fingerprint_file import read_fingerprints, write_fingerprints
from neardup.index.batch.search import BatchSearch, Pairs, scan_psm
from neardup.index.plan.design import Design, longest_leading
from neardup.index.psm.flip_model import FlipModel
from neardup.index.psm.search import Psm
from neardup.index.psm.simulated_weights import copies, fingerprints_of, pages
from tests.support.fingerprints import EXAMPLES, fingerprints, simulated, words
from tests.support.naive import all_pairs


def listed(pairs: Pairs) -> list[tuple[int, int]]:
    return list(zip(pairs.query.tolist(), pairs.fingerprint.tolist(), strict=True))


@given(fingerprints(), fingerprints(), st.integers(0, 5), st.integers(1, 40), st.sampled_from([0, batch.NEAR_BYTES]))
@settings(max_examples=EXAMPLES)
def test_small_batches(queries: list[int], others: list[int], k: int, tables: int, near_bytes: int) -> None:
    with patch.object(batch, "NEAR_BYTES", near_bytes):
        search = BatchSearch(words(queries), longest_leading(k, tables))
    assert listed(search.scan([words(others)])) == sorted(all_pairs(queries, others, k))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_in_chunks_on_all_cores(threads: int, tmp_path: Path) -> None:
    made = simulated(np.random.default_rng(1), 150_000, 3000)
    path = tmp_path / "fingerprints"
    write_fingerprints(path, made, signature_version="1", chunk=70_000)
    chunks = list(read_fingerprints(path))
    assert [chunk.size for chunk in chunks] == [70_000, 70_000, 10_000]
    queries = simulated(np.random.default_rng(1), 5000, 3000)[:200]
    found = BatchSearch(queries, Design(3, (5,))).scan(chunks, threads)
    near = np.bitwise_count(queries[:, None] ^ made[None, :]) <= 3
    assert listed(found) == sorted({(int(queries[i]), int(made[j])) for i, j in np.argwhere(near)})


def test_without_queries_or_fingerprints_there_are_no_pairs() -> None:
    nothing = np.empty(0, np.uint64)
    assert len(BatchSearch(nothing, Design(3, (5,))).scan([words([1, 2])])) == 0
    assert len(BatchSearch(words([1]), Design(3, (5,))).scan([nothing])) == 0
    assert len(BatchSearch(words([1]), Design(3, (5,))).scan([])) == 0


@pytest.mark.parametrize("first", [False, True])
def test_psm_over_chunks(first: bool) -> None:
    rng = np.random.default_rng(2)
    weights = pages(rng, 4000)
    model = FlipModel.fit(weights, copies(rng, weights))
    stored, queries = fingerprints_of(weights), copies(rng, weights)
    asked = fingerprints_of(queries)
    psm = Psm(model, 11, 60)
    found = scan_psm(psm, asked, model.levels_of(queries), [stored[:2000], stored[2000:]], first=first)
    near = np.flatnonzero(np.bitwise_count(asked ^ stored) <= 3)
    reached = np.isin(asked[near], found.query).mean()
    assert reached >= 0.95
    assert (np.bitwise_count(found.query ^ found.fingerprint) <= 3).all()


def test_a_foreign_or_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fingerprints"
    write_fingerprints(path, np.arange(5000, dtype=np.uint64), signature_version="1")
    raw = path.read_bytes()
    path.write_bytes(raw[:-1])
    with pytest.raises(CorruptState, match="torn"):
        read_fingerprints(path)
    path.write_bytes(raw[:-1] + b"!")
    with pytest.raises(CorruptState, match=r"expected checksum [0-9a-f]{8} of 0, got [0-9a-f]{8}"):
        BatchSearch(words([1]), Design(3, (5,))).scan(read_fingerprints(path))
    assert next(read_fingerprints(path, check=False)).size == 5000
    path.write_bytes(b"else" + raw[4:])
    with pytest.raises(WrongState, match="begins with"):
        read_fingerprints(path)

"""Tests of the distribution of fingerprints and of its clusters."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from neardup.evaluation.distribution import DistributionCounter, leading_ones
from neardup.evaluation.distribution_plots import plots
from neardup.evaluation.spikes import MOST_WORDS, name_of
from neardup.index.batch.fingerprint_file import write_fingerprints
from neardup.signatures.signature import Signatures
from neardup.types import Page
from neardup_services.cli import main
from tests.evaluation.made import text, write


def pages() -> list[dict[str, str]]:
    """Return 20 different pages, 7 error pages, 5 login pages, and 3 empty ones."""
    lost = "sorry the page you asked for was not found on this server try the search"
    door = "welcome back please enter your name and password to go on or register here"
    texts = [" ".join(text(number)) for number in range(20)] + [lost] * 7 + [door] * 5 + [""] * 3
    return [{"url": f"https://a.example/{number}", "text": each} for number, each in enumerate(texts)]


@pytest.fixture(scope="module")
def collected() -> DistributionCounter:
    found, signatures = DistributionCounter(), Signatures()
    for page in pages():
        found.add_page(Page(page["url"], text=page["text"]), signatures)
    return found


def test_spikes_are_named(collected: DistributionCounter) -> None:
    found = collected.distribution()
    assert [(spike.pages, spike.name) for spike in found.spikes] == [(7, "not found"), (5, "log in")]
    assert collected.distribution(spikes=1).spikes == found.spikes[:1]


def test_every_page_is_counted(collected: DistributionCounter) -> None:
    found = collected.distribution()
    assert (found.pages, found.distinct, found.skipped) == (35, 22, {"empty": 3})
    assert found.buckets.sum() == 32
    assert found.leading.sum() == found.random_leading.sum() == 21
    assert found.weights.sum() == 32 * 64
    assert found.changes.sum() == 31 * 64
    assert sum(share for _, share, _ in found.shares()) == pytest.approx(1)


def test_weights_are_centred_on_zero(collected: DistributionCounter) -> None:
    weights = collected.distribution().weights
    assert weights[:40].sum() == pytest.approx(weights[40:].sum(), rel=0.3)


def test_leading_ones_by_hand() -> None:
    counts = leading_ones(np.array([0b0000, 0b0001, 0b0100, 0b0111], np.uint64))
    assert counts[:4].tolist() == [1, 1, 1, 0]  # 0^1 = 1, 1^4 = 101, 4^7 = 11
    assert leading_ones(np.array([5], np.uint64)).sum() == 0


def test_random_fingerprints_look_random() -> None:
    found = DistributionCounter()
    found.add_fingerprints(np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64))
    spread = found.distribution()
    assert np.abs(spread.leading - spread.random_leading).sum() < 0.05 * 20_000
    assert spread.buckets.std() < 2 * np.sqrt(spread.buckets.mean())
    assert spread.spikes == []
    assert set(plots(spread)) == {"leading.svg", "buckets.svg"}


def test_names() -> None:
    assert name_of(["error", "404"]) == "not found"
    assert name_of(["please", "sign", "in"]) == "log in"
    assert name_of(["access", "denied"]) == "no access"
    assert name_of(["not", "foundation"]) is None
    assert name_of(["404"] + ["word"] * MOST_WORDS) is None


def test_the_command_on_pages(tmp_path: Path) -> None:
    given = write(tmp_path / "pages.jsonl", [*pages(), {"no": "page"}])
    done = CliRunner().invoke(main, ["distribution", str(given), "--plot", str(tmp_path / "plots")])
    assert done.exit_code == 0, done.output
    for part in ("35 pages, 22 distinct", "3 empty", "1 items could not be used", "not found", "log in", "if random"):
        assert part in done.output
    assert len(list((tmp_path / "plots").glob("*.svg"))) == 3


def test_the_command_on_fingerprints(tmp_path: Path) -> None:
    path = tmp_path / "prints"
    write_fingerprints(path, np.array([1, 1, 2], np.uint64), signature_version="x")
    done = CliRunner().invoke(main, ["distribution", str(path), "--json"])
    assert done.exit_code == 0, done.output
    body = json.loads(done.output)
    assert (body["pages"], body["distinct"]) == (3, 2)
    assert body["spikes"] == [{"fingerprint": "0000000000000001", "pages": 2, "url": "", "name": None}]


def test_the_command_without_usable_input(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["distribution", str(tmp_path / "missing.jsonl")])
    assert done.exit_code == 1
    assert "expected a readable file or folder" in done.output

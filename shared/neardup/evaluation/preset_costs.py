"""Cost and quality of each preset, on labelled pairs and on a generated crawl with known truth."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from neardup.embedded.deduplicator import Deduplicator
from neardup.evaluation.confusion import Quality
from neardup.evaluation.pairs import Pair
from neardup.evaluation.report import Cost, settings_quality
from neardup.evaluation.score import score
from neardup.sample.crawl import Sampled
from neardup.settings import PRESETS, Settings

_FIRST: Final = 300
"""Number of pages before the measurement, during which processes start and kernels load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetCost:
    """Probes, bytes and speed per page, the quality on pairs, and precision and recall on the crawl."""

    preset: str
    probes: int
    bytes_per_page: float
    pages_per_s: float
    pairs: Quality
    crawl_precision: float | None
    crawl_recall: float | None

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        return asdict(self) | {"pairs": self.pairs.as_dict()}


def preset_costs(pairs: Sequence[Pair], crawl: Sequence[Sampled], *, seed: int = 0) -> list[PresetCost]:
    """Measure every preset, the cheapest first. The speed is the speed of an embedded run on this machine.

    Raises SettingsError or OverLimit.
    """
    return [_cost(preset, pairs, crawl, seed) for preset in PRESETS]


def _cost(preset: str, pairs: Sequence[Pair], crawl: Sequence[Sampled], seed: int) -> PresetCost:
    settings = Settings.load(preset=preset)
    quality, sketch_bytes = settings_quality(pairs, settings, seed=seed)
    cost = Cost.of(settings, sketch_bytes)
    pages = [made.page for made in crawl]
    with Deduplicator(settings=settings) as known:
        verdicts = known.add_all(pages[:_FIRST])
        start = time.perf_counter()
        verdicts += known.add_all(pages[_FIRST:])
        seconds = time.perf_counter() - start
    scored = score(verdicts, [made.truth for made in crawl]).total
    speed = max(len(pages) - _FIRST, 0) / seconds
    return PresetCost(
        preset=preset,
        probes=cost.probes,
        bytes_per_page=cost.bytes_per_page,
        pages_per_s=speed,
        pairs=quality,
        crawl_precision=scored.precision,
        crawl_recall=scored.recall,
    )

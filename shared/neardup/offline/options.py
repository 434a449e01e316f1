"""The settings that an offline pass depends on."""

from dataclasses import dataclass, field

from neardup.matching.rule import Thresholds
from neardup.settings import Settings
from neardup.signatures.bands import BandFilter
from neardup.signatures.signature import DEFAULT_BANDS, SignatureOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a pass, named as their settings. The documents and these options determine the results."""

    signature_version: str
    thresholds: Thresholds = field(default_factory=Thresholds)
    pair_sources: tuple[str, ...] = ("shingles", "hamming")
    common: int = 1000
    bands: BandFilter = DEFAULT_BANDS
    super_size: int = 14
    spot_resemblance: float = 0.44
    hamming: int = 3
    rule: str = "representative"
    representative: str = "first"
    large_cluster: int = 10_000
    memory_bytes: int = 1 << 30

    @classmethod
    def of(cls, settings: Settings) -> "Options":
        """Derive the options from the settings. Raises SettingsError."""
        choices = SignatureOptions.of(settings)
        return cls(
            signature_version=choices.version,
            thresholds=Thresholds.of(settings),
            pair_sources=settings.pair_sources,
            common=settings.common_shingle,
            bands=choices.bands,
            super_size=choices.super_size,
            spot_resemblance=settings.spot_resemblance,
            hamming=settings.hamming,
            rule=settings.cluster_rule,
            representative=settings.representative,
            large_cluster=settings.large_cluster,
            memory_bytes=settings.offline_memory_mb << 20,
        )

"""The plan of a deployment, derived from its settings."""

from neardup.index.plan.plan import Plan
from neardup.settings import Settings
from neardup.signatures.signature import NO_BANDS, SignatureOptions


def plan_of(settings: Settings) -> Plan:
    """Return the plan of the tables. Raises SettingsError if the settings contradict each other."""
    choices = SignatureOptions.of(settings)
    bands = 0 if settings.bands == NO_BANDS else choices.bands.k
    version, slices = choices.version, settings.band_slice_bits
    if settings.search == "probabilistic":
        return Plan(
            signature_version=version, k=settings.hamming, header_bits=settings.header_bits, bands=bands,
            band_slice_bits=slices,
        )  # fmt: skip
    return Plan.for_tables(
        settings.tables, signature_version=version, k=settings.hamming, slice_bits=settings.slice_bits, bands=bands,
        band_slice_bits=slices,
    )  # fmt: skip

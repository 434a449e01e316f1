"""All signatures of a page in one pass, and the version that identifies the options that they depend on.

page → text → tokens → features → fingerprint
                    ↘ shingles → sketches, bands, super shingles
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import SettingsError
from neardup.settings import Settings
from neardup.signatures import checksums as identity
from neardup.signatures.bands import BandFilter
from neardup.signatures.checksums import checksum_of_content, checksum_of_hashes
from neardup.signatures.features import DETECT, TF_IDF, FeatureChoices, features_of
from neardup.signatures.fingerprint import Fingerprint, fingerprint_of
from neardup.signatures.idf import IdfTable
from neardup.signatures.shingles import shingles_of
from neardup.signatures.sketch import Sample, min_s, mips_of, sample_of, super_shingles
from neardup.signatures.spot_signatures import SpotSignatures, spot_signatures
from neardup.text.extraction import Limits, Text, read_text
from neardup.text.languages import stop_words
from neardup.text.tokens import Tokens, tokens_of
from neardup.text.unicode_tables import tables
from neardup.types import Checksums, Page

EMPTY: Final = "empty"
TOO_SHORT: Final = "too short"
NO_BANDS: Final = "none"
DEFAULT_BANDS: Final = BandFilter(k=18, s=7)

KEPT: Final = np.uint32(0xFF)
"""Mask of the byte of a MIPs value that packed sketches contain."""
_NO_HASHES: Final = np.empty(0, np.uint64)
_NO_SPOTS: Final = SpotSignatures(_NO_HASHES, np.empty(0, np.int64))

SCHEME: Final = 1
"""Version of the code. It is incremented when the same options give other signatures; golden vectors detect that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureOptions:
    """All options that signatures depend on. Two documents are comparable only if all their options are equal."""

    main_content: bool = False
    limits: Limits = field(default_factory=Limits)
    character_ngram: int = 2
    features: FeatureChoices = field(default_factory=FeatureChoices)
    least_features: int = 8
    width: int = 64
    w: int = 3
    s: int = 84
    m: int = 128
    bands: BandFilter = DEFAULT_BANDS
    filter: BandFilter = field(default_factory=lambda: BandFilter(k=6, s=14, r=2))
    super_size: int = 14
    spot_distance: int = 1
    spot_chain: int = 2
    keep_spots: bool = False

    def __post_init__(self) -> None:
        """Check the options. Raises SettingsError for values out of range or in conflict."""
        for name, low, high in (
            ("character_ngram", 1, 8),
            ("least_features", 1, 10**6),
            ("width", 32, 128),
            ("w", 1, 64),
            ("s", 1, 10**4),
            ("m", 1, 10**4),
            ("super_size", 1, 10**4),
            ("spot_distance", 1, 64),
            ("spot_chain", 1, 64),
        ):
            if not low <= getattr(self, name) <= high:
                raise SettingsError(f"{name}: expected {low} to {high}, got {getattr(self, name)}")
        for name in ("bands", "filter"):
            groups: BandFilter = getattr(self, name)
            if groups.k * groups.s > self.m:
                raise SettingsError(f"{name}: expected k·s to be at most m = {self.m}, got {groups.k}·{groups.s}")

    @classmethod
    def of(cls, settings: Settings) -> "SignatureOptions":
        """Return the options of a deployment. Raises SettingsError if its settings conflict."""
        if (settings.weighting == TF_IDF) != bool(settings.idf_table):
            raise SettingsError("NEARDUP_IDF_TABLE: expected with NEARDUP_WEIGHTING=tf-idf, and only with it")
        if settings.language != DETECT and (settings.stem or settings.drop_stop_words):
            stop_words(settings.language)
        return cls(
            main_content=settings.main_content,
            limits=Limits(
                settings.page_bytes, settings.page_nesting, settings.page_tokens, settings.over_limit == "reject"
            ),
            features=FeatureChoices(
                phrases=settings.phrases,
                weighting=settings.weighting,
                drop_stop_words=settings.drop_stop_words,
                stem=settings.stem,
                language=settings.language,
                idf=IdfTable.load(Path(settings.idf_table)) if settings.idf_table else None,
            ),
            w=settings.shingle_words,
            bands=DEFAULT_BANDS if settings.bands == NO_BANDS else BandFilter(*map(int, settings.bands.split("x"))),
            keep_spots=settings.spots,
        )

    @property
    def version(self) -> str:
        """A string that contains every option, the hash functions and the Unicode version."""
        limits = self.limits
        return ";".join(
            (
                f"nd{SCHEME}",
                f"unicode-{tables().unicode}",
                "main" if self.main_content else "all",
                f"limits-{limits.bytes},{limits.nesting},{limits.tokens},{'reject' if limits.reject else 'cut'}",
                f"chars-{self.character_ngram}",
                f"features-{self.features.name},least-{self.least_features}",
                f"simhash-{self.width},murmur3,xxh64",
                f"shingles-{self.w},min-{self.s},mod,mips-{self.m}",
                f"bands-{self.bands.k}x{self.bands.s},bytes",
                f"filter-{self.filter.k}x{self.filter.s}>={self.filter.r}",
                f"super-{self.super_size}",
                f"spots-{self.spot_distance},{self.spot_chain}{',kept' if self.keep_spots else ''}",
                f"identity-{identity.NAME}",
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketches:
    """Sketches of a document's shingles, and its spot signatures."""

    shingles: int
    sample: Sample
    smallest: NDArray[np.uint64]
    mips: NDArray[np.uint32]
    bands: NDArray[np.uint64]
    filter: NDArray[np.uint64]
    supers: NDArray[np.uint64]
    spots: SpotSignatures


@dataclass(frozen=True, slots=True)
class Signature:
    """A page's signatures. A skipped page has no fingerprint and no sketches, only the reason in `skipped`.

    `cut` contains the names of the limits at which the page was cut.
    """

    checksums: Checksums
    tokens: int
    fingerprint: Fingerprint | None = None
    sketches: Sketches | None = None
    skipped: str | None = None
    cut: tuple[str, ...] = ()


class Signatures:
    """A factory of signatures with fixed options. It may be shared between threads; the kernels release the GIL."""

    def __init__(self, choices: SignatureOptions | None = None, *, everything: bool = True) -> None:
        """Use these options, or the defaults.

        Without `everything`, the sketches that the stream does not use are empty: MIN_s, the groups of the filter,
        super shingles, and spot signatures unless `keep_spots` is set.
        """
        self.choices: Final = choices or SignatureOptions()
        self._everything = everything
        self.version: Final = self.choices.version

    def text_and_tokens(self, page: Page) -> tuple[Text, Tokens]:
        """Return the text and the tokens of a page. Both are valid until this thread reads the next page."""
        choices = self.choices
        text = read_text(page, choices.limits, main_content=choices.main_content)
        return text, tokens_of(text.utf8, character_ngram=choices.character_ngram, limit=choices.limits.tokens)

    def of(self, page: Page) -> Signature:
        """Return all signatures of a page.

        Raises OverLimit if the page is over a limit and such pages are rejected. No content raises any other error.
        """
        choices = self.choices
        text, tokens = self.text_and_tokens(page)
        cut = text.cut
        if tokens.cut:
            cut = (*cut, choices.limits.over("tokens", choices.limits.tokens))
        shingles = shingles_of(tokens, choices.w)
        sample = sample_of(shingles)
        checksums = Checksums(
            checksum_of_content(page.content), checksum_of_hashes(tokens.hashes), checksum_of_hashes(sample.values)
        )
        features = features_of(tokens, choices.features)
        skipped = text.skipped
        if skipped is None and len(features) < choices.least_features:
            skipped = TOO_SHORT if len(tokens) else EMPTY
        if skipped is not None:
            return Signature(checksums, len(tokens), skipped=skipped, cut=cut)
        return Signature(
            checksums,
            len(tokens),
            fingerprint_of(features, choices.width),
            self._sketches(tokens, shingles, sample),
            cut=cut,
        )

    def _sketches(self, tokens: Tokens, shingles: NDArray[np.uint64], sample: Sample) -> Sketches:
        choices = self.choices
        mips = mips_of(shingles, choices.m)
        # Bands use only the bytes that packed sketches contain, so owners can compute the bands that two pages share.
        bands = choices.bands.keys(mips & KEPT)
        spots = _NO_SPOTS
        if self._everything or choices.keep_spots:
            spots = spot_signatures(tokens, distance=choices.spot_distance, chain=choices.spot_chain)
        if not self._everything:
            return Sketches(
                shingles=shingles.size,
                sample=sample,
                smallest=_NO_HASHES,
                mips=mips,
                bands=bands,
                filter=_NO_HASHES,
                supers=_NO_HASHES,
                spots=spots,
            )
        smallest = min_s(shingles, choices.s)
        return Sketches(
            shingles=shingles.size,
            sample=sample,
            smallest=smallest,
            mips=mips,
            bands=bands,
            filter=choices.filter.keys(mips),
            supers=super_shingles(smallest, choices.super_size),
            spots=spots,
        )

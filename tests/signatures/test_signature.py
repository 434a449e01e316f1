"""Tests that the signature version covers every option, and that golden vectors pin the signatures of a version."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neardup.errors import OverLimit, SettingsError
from neardup.settings import Settings
from neardup.signatures.bands import BandFilter
from neardup.signatures.features import LOG_TF, TF, TF_IDF, FeatureChoices
from neardup.signatures.idf import IdfTable
from neardup.signatures.signature import Signature, SignatureOptions, Signatures
from neardup.text.extraction import Limits
from neardup.types import Page, Relation
from tests.support.pages import GOLDEN

VERSION = (
    "nd1;unicode-15.1.0;all;limits-8388608,512,200000,cut;chars-2;features-1gram,presence,least-8;"
    "simhash-64,murmur3,xxh64;shingles-3,min-84,mod,mips-128;bands-18x7,bytes;filter-6x14>=2;super-14;spots-1,2;"
    "identity-xxh3-128"
)

# Change a golden vector only together with VERSION: by another default of an option, or by SCHEME.
VECTORS = {
    "english": [
        "578d1918081ac450",
        "bf7ffc5e17ebe190482495b31b89c8a7",
        "ab4faa84a3ffbdeb14ef9c8129f2f042",
        "05c4dea9dd89ff0a",
    ],
    "latin1": [
        "8c2e4caafb98b3ea",
        "09c2f1378af18cef3c8fcab508ccdcee",
        "c17819e173bb99d8529ce68e3b7b30e7",
        "82ff2b7b639c208e",
    ],
    "japanese": [
        "0e9e199a6a08ae51",
        "b756fe5c5467d970c96e523f986bc703",
        "b91fadffbc85dd24b02a2132d72a19cd",
        "09591edf221ef8f9",
    ],
    "thai": [
        "92f1bde9f48b7d2a",
        "5a252d185779e29686bc83f3c6b31bcc",
        "36db5b78a6e7ebb82d527e420cccf708",
        "3812d3aa3c4c91db",
    ],
    "greek": [
        "efc9fedfe1b4fa4e",
        "1da675cd7f3839e8fd7258ce475a8c6d",
        "6addc2a362e3c9437f4fee4227cc7542",
        "480ea9f35dddd408",
    ],
    "short": ["too short", "ddab7e8d5e362342fd7283a0790948f6", "2d669f121a87df77756570488e1a7ff7"],
    "empty": ["empty", "99aa06d3014798d86001c324468d497f", "99aa06d3014798d86001c324468d497f"],
}


def digest(signature: Signature) -> list[str]:
    """Return fingerprint and checksums, and a checksum of everything else."""
    shown = [signature.checksums.tokens.hex(), signature.checksums.shingles.hex()]
    if signature.fingerprint is None or signature.sketches is None:
        return [str(signature.skipped), *shown]
    sketches = signature.sketches
    rest = np.concatenate(
        [
            signature.fingerprint.weights.astype(np.uint64),
            sketches.mips.astype(np.uint64),
            sketches.bands,
            sketches.filter,
            sketches.sample.values,
            sketches.smallest,
            sketches.supers,
            sketches.spots.hashes,
            sketches.spots.counts.astype(np.uint64),
        ]
    )
    folded = int(np.bitwise_xor.reduce(rest * np.arange(1, 2 * rest.size, 2, dtype=np.uint64)))
    return [f"{signature.fingerprint.value:016x}", *shown, f"{folded:016x}"]


def digests() -> dict[str, list[str]]:
    signatures = Signatures()
    return {name: digest(signatures.of(page)) for name, page in GOLDEN.items()}


def test_version() -> None:
    assert Signatures().version == VERSION


def test_golden_vectors() -> None:
    assert digests() == VECTORS


@pytest.mark.parametrize("environment", [{}, {"NUMBA_DISABLE_JIT": "1"}, {"NUMBA_NUM_THREADS": "1"}])
def test_golden_vectors_in_another_process(environment: dict[str, str]) -> None:
    code = (
        "import json, warnings; warnings.simplefilter('ignore'); from tests.signatures.test_signature import digests;"
        "print(json.dumps(digests()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert json.loads(done.stdout) == VECTORS


@pytest.mark.parametrize("threads", [2, 8])
def test_golden_vectors_on_many_threads(threads: int) -> None:
    signatures = Signatures()
    names = list(GOLDEN) * 40
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda name: digest(signatures.of(GOLDEN[name])), names))
    assert found == [VECTORS[name] for name in names]


CHANGED = [
    SignatureOptions(main_content=True),
    SignatureOptions(limits=Limits(bytes=1000)),
    SignatureOptions(limits=Limits(nesting=10)),
    SignatureOptions(limits=Limits(tokens=10)),
    SignatureOptions(limits=Limits(reject=True)),
    SignatureOptions(character_ngram=3),
    SignatureOptions(features=FeatureChoices(phrases=(1, 2))),
    SignatureOptions(features=FeatureChoices(weighting=TF)),
    SignatureOptions(features=FeatureChoices(weighting=LOG_TF)),
    SignatureOptions(features=FeatureChoices(weighting=TF_IDF, idf=IdfTable.of([]))),
    SignatureOptions(features=FeatureChoices(drop_stop_words=True)),
    SignatureOptions(features=FeatureChoices(stem=True)),
    SignatureOptions(features=FeatureChoices(stem=True, language="german")),
    SignatureOptions(least_features=9),
    SignatureOptions(width=128),
    SignatureOptions(w=4),
    SignatureOptions(s=50),
    SignatureOptions(m=256),
    SignatureOptions(bands=BandFilter(k=20, s=5)),
    SignatureOptions(filter=BandFilter(k=6, s=14, r=1)),
    SignatureOptions(super_size=6),
    SignatureOptions(spot_distance=2),
    SignatureOptions(spot_chain=3),
]


def test_every_option_changes_the_version() -> None:
    versions = {options.version for options in CHANGED}
    assert len(versions | {SignatureOptions().version}) == len(CHANGED) + 1


@pytest.mark.parametrize("options", CHANGED)
def test_every_option_can_be_applied(options: SignatureOptions) -> None:
    if options.limits == Limits():
        assert Signatures(options).of(GOLDEN["english"]).fingerprint is not None


def test_invalid_options_are_refused() -> None:
    with pytest.raises(SettingsError, match="width: expected 32 to 128, got 16"):
        SignatureOptions(width=16)
    with pytest.raises(SettingsError, match="bands"):
        SignatureOptions(m=64)


def test_three_levels_of_identity() -> None:
    signatures = Signatures()
    page = GOLDEN["english"]
    assert page.html is not None
    first = signatures.of(page).checksums
    assert signatures.of(page).checksums.relation_to(first) == Relation.IDENTICAL
    formatted = replace(page, html=page.html.replace(b"<p>The", b"<p class=x>\n THE"))
    assert signatures.of(formatted).checksums.relation_to(first) == Relation.SAME_TEXT
    repeated = Page("u", text="one two three one two three one two three")
    longer = Page("u", text="one two three one two three one two three one two three")
    same = signatures.of(longer).checksums.relation_to(signatures.of(repeated).checksums)
    assert same == Relation.SAME_SHINGLES
    assert signatures.of(GOLDEN["greek"]).checksums.relation_to(first) is None


def test_short_and_empty_pages_are_skipped_with_a_reason() -> None:
    signatures = Signatures()
    found = {name: signatures.of(GOLDEN[name]) for name in ("short", "empty")}
    assert {name: signature.skipped for name, signature in found.items()} == {"short": "too short", "empty": "empty"}
    assert signatures.of(Page("u", html=b"<script>words that nobody reads</script>")).skipped == "empty"
    assert all(signature.fingerprint is None and signature.sketches is None for signature in found.values())


def test_pages_over_a_limit_are_truncated_with_a_note() -> None:
    page = Page("u", html=b"<div>" * 40 + b"word other " * 30)
    assert Signatures(SignatureOptions(limits=Limits(nesting=20))).of(page).cut == ("nesting",)
    assert Signatures(SignatureOptions(limits=Limits(tokens=20))).of(page).cut == ("tokens",)
    assert Signatures(SignatureOptions(limits=Limits(bytes=250))).of(page).cut == ("bytes",)
    assert Signatures().of(page).cut == ()


@pytest.mark.parametrize("limits", [Limits(bytes=250), Limits(nesting=20), Limits(tokens=20)])
def test_pages_over_a_limit_are_refused_if_configured(limits: Limits) -> None:
    page = Page("u", html=b"<div>" * 40 + b"word other " * 30)
    with pytest.raises(OverLimit, match="expected at most"):
        Signatures(SignatureOptions(limits=replace(limits, reject=True))).of(page)


def test_settings_become_options(tmp_path: Path) -> None:
    assert SignatureOptions.of(Settings()) == SignatureOptions()
    table = tmp_path / "idf.npz"
    IdfTable.of([np.array([1, 2], dtype=np.uint64), np.array([2], dtype=np.uint64)]).save(table)
    chosen = SignatureOptions.of(
        Settings.load(
            {
                "NEARDUP_MAIN_CONTENT": "true",
                "NEARDUP_PAGE_TOKENS": "77",
                "NEARDUP_OVER_LIMIT": "reject",
                "NEARDUP_PHRASES": "1+2",
                "NEARDUP_WEIGHTING": "tf-idf",
                "NEARDUP_IDF_TABLE": str(table),
                "NEARDUP_STEM": "true",
                "NEARDUP_LANGUAGE": "german",
                "NEARDUP_SHINGLE_WORDS": "5",
            }
        )
    )
    assert (chosen.main_content, chosen.limits.tokens, chosen.limits.reject, chosen.w) == (True, 77, True, 5)
    assert (chosen.features.phrases, chosen.features.stem, chosen.features.language) == ((1, 2), True, "german")
    assert chosen.features.idf is not None
    assert chosen.version != SignatureOptions().version


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"NEARDUP_WEIGHTING": "tf-idf"}, "NEARDUP_IDF_TABLE: expected with NEARDUP_WEIGHTING=tf-idf"),
        ({"NEARDUP_IDF_TABLE": "table.npz"}, "NEARDUP_IDF_TABLE: expected with NEARDUP_WEIGHTING=tf-idf"),
        ({"NEARDUP_STEM": "true", "NEARDUP_LANGUAGE": "klingon"}, "expected one of .* got 'klingon'"),
        ({"NEARDUP_STEM": "maybe"}, "NEARDUP_STEM: expected true or false, got 'maybe'"),
        ({"NEARDUP_PHRASES": "1+9"}, r"NEARDUP_PHRASES: expected phrase lengths from 1 to 8 joined by .* got '1\+9'"),
    ],
)
def test_invalid_settings_are_a_clear_error(environment: dict[str, str], expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        SignatureOptions.of(Settings.load(environment))

"""Tests with mutated pages: they raise only named errors, and memory does not grow."""

import os
import resource

import pytest

from neardup.errors import OverLimit
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.text.extraction import Limits
from neardup.types import Page
from tests.support.pages import mutated

COUNT = int(os.environ.get("NEARDUP_TEST_FUZZ_PAGES", "20000"))
"""Number of pages: enough for about ten seconds, or fewer for a quick run."""

MOST_GROWTH_MB = 200


def test_mutated_pages_raise_nothing() -> None:
    cutting = Signatures(SignatureOptions(limits=Limits(bytes=60_000, nesting=64, tokens=2000)))
    main = Signatures(SignatureOptions(main_content=True))
    for page in mutated(1, 50):
        cutting.of(page)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number, page in enumerate(mutated(2, COUNT)):
        signature = (main if number % 3 == 0 else cutting).of(page)
        assert (signature.fingerprint is None) == (signature.skipped is not None)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MOST_GROWTH_MB * 1024


def test_mutated_pages_over_limits_raise_a_named_error() -> None:
    refusing = Signatures(SignatureOptions(limits=Limits(bytes=2000, nesting=8, tokens=50, reject=True)))
    refused = 0
    for page in mutated(3, COUNT // 10):
        try:
            refusing.of(page)
        except OverLimit:
            refused += 1
    assert refused


@pytest.mark.parametrize(
    "html",
    [
        b"<div>" * 400_000 + b"x",
        b"<a " + b"x " * 1_000_000 + b">text",
        b"<a title='" + b"x" * 4_000_000 + b"'>text",
        b"<!-- " * 400_000,
        b"</x>" * 400_000,
        b"<p>" + b"</b>" * 400_000,
        b"&" * 1_000_000,
        b"<script>" + b"<!-- <script> " * 100_000,
        b"a" + b"\xcc\x81\xcc\xa3" * 400_000,
        "ﷺ".encode() * 100_000,
        b"<style>" + b"</styl" * 300_000,
    ],
    ids=lambda html: html[:12].decode("latin-1"),
)
def test_huge_and_deep_pages_take_linear_time(html: bytes) -> None:
    signatures = Signatures()
    start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    signatures.of(Page("u", html=html))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - start < 3

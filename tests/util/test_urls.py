"""Tests that hosts of urls are the same as those of the standard library, on the fast path and on the slow one."""

from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.util.urls import host_of, host_or_url

SCHEMES = st.sampled_from(["http", "https", "HTTP", "ftp", "", "https:"])
AUTHORITIES = st.text("ab1.-:@[]%AÄ", max_size=12)
RESTS = st.one_of(st.just(""), st.text("/?#:@[]\\ \t\na.", max_size=8))


@given(st.builds(lambda scheme, authority, rest: f"{scheme}://{authority}{rest}", SCHEMES, AUTHORITIES, RESTS))
@example("http://a.example\n")
@example("https://a.example?q")
@example("https://a.example#@b.example")
def test_the_fast_path_equals_the_library(url: str) -> None:
    try:
        expected: str | None = urlsplit(url).hostname or ""
    except ValueError:
        expected = None
    assert host_of(url) == expected


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a.example/path", "a.example"),
        ("https://User@A.Example:8080/", "a.example"),
        ("not a url", ""),
        ("http://[broken/", "http://[broken/"),
    ],
)
def test_an_invalid_url_is_its_own_host(url: str, host: str) -> None:
    assert host_or_url(url) == host

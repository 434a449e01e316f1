"""Tests of the format of sizes and durations for people."""

import pytest

from neardup.util.formatting import format_bytes, format_seconds, printable, shortened


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (1_500_000, "1.5 MB"),
        (2e9, "2.0 GB"),
        (3e12, "3.0 TB"),
        (4e15, "4000.0 TB"),
    ],
)
def test_bytes_have_decimal_units(count: float, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (119.9, "119.9 s"),
        (120, "2 min 0 s"),
        (7199, "119 min 59 s"),
        (7200, "2 h 0 min"),
        (90_061, "25 h 1 min"),
    ],
)
def test_durations_have_at_most_two_units(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_foreign_text_is_escaped_and_truncated() -> None:
    assert printable("a\x1b[2J\u202eb") == "a\\x1b[2J\\u202eb"
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdef", 5) == "abcd…"

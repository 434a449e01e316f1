"""What the soak program makes of its figures. The program itself takes an hour."""

from typing import Any

from tests.faults.soak import SERVICES, judged


def seen(minutes: int = 60, *, leak_mb: float = 0.0, slower_ms: float = 0.0) -> dict[str, Any]:
    """A run in which the shard grows with every minute, and verdicts come later."""
    at = range(minutes)
    return {
        "minutes": minutes,
        "services": {
            name: {
                "seconds": [60.0 * minute for minute in at],
                "memory_mb": [300 + (leak_mb * minute if name == "shard" else 0) for minute in at],
            }
            for name in SERVICES
        },
        "latency_ms": [{"minute": each, "p50": 100.0, "p99": 300.0 + slower_ms * each} for each in at],
    }


def broken(figures: dict[str, Any]) -> list[str]:
    return [each["what"] for each in judged(figures) if each["holds"] is False]


def test_an_even_run_breaks_no_bound() -> None:
    assert broken(seen()) == []


def test_memory_that_grows_is_told_long_before_its_bound() -> None:
    assert broken(seen(leak_mb=2)) == ["shard: growth of memory, MB/h"]
    assert "shard: most memory, MB" in broken(seen(leak_mb=10))


def test_verdicts_that_come_later_and_later_are_told() -> None:
    assert broken(seen(slower_ms=10)) == ["p99, ms, at the end"]


def test_a_short_run_does_not_judge_growth() -> None:
    assert broken(seen(10, leak_mb=2)) == []

"""Tests of log lines of the services: the rate limit on messages of the Kafka client."""

import logging

import pytest

from neardup_services.worker.logs import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limit(clock: Clock) -> RateLimit:
    return RateLimit(30, clock)


def passed(limit: RateLimit, message: str, *args: object, name: str = "aiokafka") -> str | None:
    record = logging.LogRecord(name, logging.ERROR, __file__, 1, message, args, None)
    return record.getMessage() if limit.filter(record) else None


def test_a_message_passes_once_per_interval_with_the_number_of_suppressed_ones(limit: RateLimit, clock: Clock) -> None:
    assert passed(limit, "no connection to %s", 1) == "no connection to 1"
    for number in range(100):
        clock.now += 0.2
        assert passed(limit, "no connection to %s", number) is None
    clock.now = 31
    assert passed(limit, "no connection to %s", "50%") == "no connection to 50% (and 100 more like this)"
    clock.now = 62
    assert passed(limit, "no connection to %s", 3) == "no connection to 3"


def test_messages_and_loggers_are_limited_independently(limit: RateLimit) -> None:
    assert passed(limit, "one") == "one"
    assert passed(limit, "two") == "two"
    assert passed(limit, "one", name="aiokafka.consumer.fetcher") == "one"
    assert passed(limit, "one") is None


def test_lines_of_other_loggers_always_pass(limit: RateLimit) -> None:
    assert [
        passed(limit, "one", name=name)
        for name in ("neardup.runtime.runner", "aiokafkaesque", "neardup.runtime.runner")
    ] == ["one"] * 3


def test_many_different_messages_use_bounded_memory(limit: RateLimit) -> None:
    for number in range(2000):
        assert passed(limit, f"message {number}") is not None
    assert len(limit._seen) <= 256
    assert passed(limit, "message 1999") is None

import logging

import pytest

from neardup.log import Partition
from neardup.runtime.watchdog import BrokerContact, Watchdog

A = Partition("pages", 0)
B = Partition("pages", 1)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watchdog(clock: Clock) -> Watchdog:
    return Watchdog(60, clock)


def test_without_observations_no_partition_is_stuck(watchdog: Watchdog, clock: Clock) -> None:
    clock.now += 10_000
    assert watchdog.stuck() == []


def test_a_partition_with_lag_is_stuck_only_after_the_limit(watchdog: Watchdog, clock: Clock) -> None:
    watchdog.observe(A, 5, 10)
    clock.now += 60
    assert watchdog.stuck() == []
    clock.now += 0.1
    assert watchdog.stuck() == [A]


def test_an_observation_without_progress_does_not_restart_the_timer(watchdog: Watchdog, clock: Clock) -> None:
    for _ in range(7):
        watchdog.observe(A, 5, 10)
        clock.now += 10
    assert watchdog.stuck() == [A]


def test_a_growing_lag_is_not_progress(watchdog: Watchdog, clock: Clock) -> None:
    for end in range(10, 17):
        watchdog.observe(A, 5, end)
        clock.now += 10
    assert watchdog.stuck() == [A]


def test_slow_progress_is_progress(watchdog: Watchdog, clock: Clock) -> None:
    for done in range(10):
        watchdog.observe(A, done, 100)
        clock.now += 59
        assert watchdog.stuck() == []


def test_a_partition_without_lag_is_never_stuck(watchdog: Watchdog, clock: Clock) -> None:
    for _ in range(10):
        watchdog.observe(A, 10, 10)
        clock.now += 59
        assert watchdog.stuck() == []


def test_the_timer_starts_when_lag_appears(watchdog: Watchdog, clock: Clock) -> None:
    watchdog.observe(A, 10, 10)
    clock.now += 30
    watchdog.observe(A, 10, 10)
    clock.now += 50
    watchdog.observe(A, 10, 11)
    assert watchdog.stuck() == []
    clock.now += 20
    assert watchdog.stuck() == [A]


def test_progress_frees_a_stuck_partition(watchdog: Watchdog, clock: Clock) -> None:
    watchdog.observe(A, 5, 10)
    clock.now += 100
    assert watchdog.stuck() == [A]
    watchdog.observe(A, 6, 10)
    assert watchdog.stuck() == []


def test_a_lower_offset_counts_as_progress(watchdog: Watchdog, clock: Clock) -> None:
    watchdog.observe(A, 5, 10)
    clock.now += 100
    watchdog.observe(A, 0, 10)  # a rebuild of the state starts again at offset 0
    assert watchdog.stuck() == []


def test_partitions_are_watched_independently(watchdog: Watchdog, clock: Clock) -> None:
    watchdog.observe(A, 5, 10)
    watchdog.observe(B, 5, 10)
    clock.now += 61
    watchdog.observe(B, 6, 10)
    assert watchdog.stuck() == [A]
    clock.now += 61
    assert watchdog.stuck() == [A, B]


def test_a_forgotten_partition_is_not_stuck_and_its_timer_restarts(watchdog: Watchdog, clock: Clock) -> None:
    watchdog.observe(A, 5, 10)
    clock.now += 100
    watchdog.forget(A)
    assert watchdog.stuck() == []
    watchdog.observe(A, 5, 10)
    assert watchdog.stuck() == []
    clock.now += 61
    assert watchdog.stuck() == [A]


def test_forgetting_an_unknown_partition_is_harmless(watchdog: Watchdog) -> None:
    watchdog.observe(A, 0, 0)
    watchdog.forget(B)
    assert watchdog.stuck() == []


def test_the_broker_is_silent_ten_seconds_after_its_last_answer(clock: Clock) -> None:
    contact = BrokerContact(clock)
    clock.now += 10
    assert contact.silence() is None
    clock.now += 1
    assert contact.silence() == 11
    assert contact.answered()
    assert contact.silence() is None
    assert not contact.answered()


def test_an_outage_is_logged_every_ten_seconds_and_at_its_end(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "neardup.runtime.watchdog")
    contact = BrokerContact(clock)
    for _ in range(40):
        clock.now += 1
        contact.report()
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        f"no contact with the broker for {seconds} s" for seconds in (11, 21, 31)
    ]
    caplog.clear()
    contact.answered()
    contact.answered()
    contact.report()
    assert caplog.messages == ["contact with the broker is restored after 40 s"]


def test_a_short_silence_is_not_logged(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "neardup.runtime.watchdog")
    contact = BrokerContact(clock)
    clock.now += 10
    contact.report()
    assert not contact.answered()
    assert caplog.messages == []

"""Tests of crashes and pauses under a steady load: afterwards every verdict is the same as without them.

`make test` causes a few of them once, `make faults` all of them repeatedly (NEARDUP_TEST_FAULT_ROUNDS).
"""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from neardup.settings import Settings
from tests.faults.outage import SERVICES, SESSION_SECONDS, Fault, Outage
from tests.faults.results import record
from tests.services.workers import Deployment
from tests.support.brokers import own_cluster

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.real_broker,
    pytest.mark.faults,
]

ROUNDS = int(os.environ.get("NEARDUP_TEST_FAULT_ROUNDS", "1"))

# `tests/services/test_stream.py` also kills workers.
IN_SHORT = [("a worker paused, then kill -9 of the broker", 1, Outage.a_bad_day, 1)]
AT_LENGTH = [
    ("nothing, for comparison", 1, Outage.nothing, ROUNDS),
    ("kill -9 of a worker, each service in turn", 1, Outage.kill_a_worker, ROUNDS * len(SERVICES)),
    ("a worker paused past its session timeout", 1, Outage.pause_a_worker, ROUNDS),
    ("one worker added, another one stopped", 1, Outage.add_and_remove_workers, ROUNDS),
    ("the broker restarted cleanly", 1, Outage.restart_the_broker, ROUNDS),
    ("kill -9 of the broker", 1, Outage.kill_the_broker, ROUNDS),
    ("kill -9 of each of three brokers in turn", 3, Outage.kill_the_broker, ROUNDS),
]


@pytest.fixture
async def outage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Outage]:
    nodes = request.param
    with own_cluster(tmp_path / "kafka", nodes=nodes) as cluster:
        settings = Settings(
            broker=cluster.bootstrap,
            prefix="outage",
            replication=nodes,
            session_timeout_seconds=SESSION_SECONDS,
            checkpoint_seconds=0.3,
            verdict_partitions=2,
            corpus=str(tmp_path / "corpus"),
            corpus_seconds=1,
        )
        deployment = Deployment(settings, tmp_path)
        assert deployment.neardup("topics", "create").returncode == 0
        # The short run has no recluster worker, because it checks only verdicts.
        made = Outage(cluster, deployment, SERVICES[:3] if ROUNDS == 1 else SERVICES, seed=21)
        try:
            await made.start()
            yield made
        finally:
            await made.end()


@pytest.mark.parametrize(
    ("name", "outage", "fault", "times"),
    [pytest.param(*each, id=each[0]) for each in (IN_SHORT if ROUNDS == 1 else AT_LENGTH)],
    indirect=["outage"],
)
async def test_the_verdicts_equal_those_of_an_undisturbed_run(
    name: str, outage: Outage, fault: Fault, times: int, tmp_path: Path
) -> None:
    await outage.suffer(fault, times)
    await outage.finish()
    record(name, **outage.measured())
    outage.check(tmp_path / "embedded", replace(outage.deployment.settings, state=tmp_path / "other", corpus=""))
    if "recluster" in outage.services:
        await outage.check_corpus()

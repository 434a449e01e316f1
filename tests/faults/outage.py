"""A cluster and two workers of each service under a steady load, with the faults that a test can cause."""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from deploy.kafka import broker as kafka
from neardup.embedded.deduplicator import Deduplicator
from neardup.offline.corpus.corpus import Corpus
from neardup.settings import Settings
from neardup.types import Kind
from tests.faults.following import Follower
from tests.faults.load import SteadyLoad, sampled
from tests.services.test_stream import number_of
from tests.services.workers import Deployment, Worker

SERVICES = ("featurizer", "shard", "aggregator", "recluster")
SESSION_SECONDS = 2.0
RATE = 25.0
"""Pages per second. With three brokers on the machine, the rate is a third of it and `LATE_SECONDS` is tripled."""
LATE_SECONDS = 3.0
"""Seconds after which a page without a verdict is late. Without faults no page is late."""
CATCH_UP_SECONDS = 120.0


class Outage:
    """A running stream. Each method for a fault causes it once and returns when the affected part runs again."""

    def __init__(
        self, cluster: kafka.Cluster, deployment: Deployment, services: Sequence[str] = SERVICES, *, seed: int
    ) -> None:
        self.services = list(services) * 2
        """The service of each worker."""
        self.cluster, self.deployment = cluster, deployment
        self.load = SteadyLoad(deployment.settings, RATE / len(cluster.nodes), sampled(seed))
        self._late_seconds = LATE_SECONDS * len(cluster.nodes)
        self.follower = Follower(deployment.settings)
        self.revived = 0
        """Number of workers that ended by themselves and were restarted."""
        self._random = random.Random(seed)
        self._began: list[float] = []
        self._turn = 0
        self._running: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start two workers of each service, then the load."""
        for service in self.services:
            self.deployment.start("neardup", "worker", service)
        for worker in self.deployment.workers:
            await asyncio.to_thread(worker.await_ready, 120)
        self._running = [asyncio.create_task(self.load.run()), asyncio.create_task(self.follower.run())]
        await self.caught_up()

    async def suffer(self, fault: "Fault", times: int) -> None:
        """Cause a fault repeatedly at random moments. Each time, wait until the stream has recovered."""
        for _ in range(times):
            await asyncio.sleep(self._random.uniform(0.5, 2.5))
            self._began.append(time.time())
            await fault(self)
            await self.caught_up()

    async def finish(self) -> None:
        """End the load and wait for the final verdict on every page."""
        self.load.stop()
        await self._running[0]
        await self.caught_up()
        # Revisions may follow the first verdicts.
        while time.monotonic() - self.follower.received_at < 2:
            await asyncio.sleep(0.2)

    async def end(self) -> None:
        """Stop everything that still runs."""
        for task in self._running:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for worker in self.deployment.workers:
            worker.kill()

    async def caught_up(self) -> None:
        """Wait until no page is late. Restart workers that ended, as an orchestrator does."""
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while True:
            for task in self._running:
                if task.done() and (error := task.exception()) is not None:
                    raise error
            sent = self.load.sent_before(time.time() - self._late_seconds)
            unsettled = self.follower.unsettled(sent)
            if sent and not unsettled:
                return
            assert time.monotonic() < deadline, f"pages {unsettled[:20]} of {sent} have no verdict\n{self._logs()}"
            for worker in self.deployment.workers:
                if worker.process.poll() is not None:
                    self.revived += 1
                    worker.start()
            await asyncio.sleep(0.2)

    # Faults

    async def nothing(self) -> None:
        """Do nothing, for comparison."""
        await asyncio.sleep(2)

    async def kill_a_worker(self) -> None:
        """Kill -9 a worker, of each service in turn, and restart it with its state."""
        worker = self._next_worker()
        worker.kill()
        worker.start()
        await asyncio.to_thread(worker.await_ready, 60)

    async def pause_a_worker(self) -> None:
        """Pause a worker long enough for others to take over, then resume it."""
        worker = self._next_worker()
        worker.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(SESSION_SECONDS * 2.5)
        worker.process.send_signal(signal.SIGCONT)

    async def add_and_remove_workers(self) -> None:
        """Add a third worker of a service, and stop its oldest one cleanly."""
        number = self._turn % len(self.services)
        self._turn += 1
        leaving = self.deployment.workers[number]
        coming = self.deployment.start("neardup", "worker", self.services[number])
        await asyncio.to_thread(coming.await_ready, 60)
        assert await asyncio.to_thread(leaving.terminate) == 0, leaving.log.read_text()
        self.deployment.workers[number] = self.deployment.workers.pop()

    async def restart_the_broker(self) -> None:
        """Restart the broker cleanly."""
        await asyncio.to_thread(self.cluster.restart, self._next_node())

    async def kill_the_broker(self) -> None:
        """Kill -9 the broker, each node in turn, and restart it."""
        node = self._next_node()
        self.cluster.kill(node)
        await asyncio.sleep(1)
        await asyncio.to_thread(self.cluster.start, node)

    async def a_bad_day(self) -> None:
        """Pause a worker, then kill the broker."""
        await self.pause_a_worker()
        await self.kill_the_broker()

    # Checks

    def check(self, embedded: Path, settings: Settings) -> None:
        """Check that each verdict is the same as in one process without faults."""
        with Deduplicator(embedded, settings) as known:
            expected = known.add_all(self.load.pages)
        last = self.follower.last
        assert sorted(last) == list(range(len(expected)))
        verdicts = [last[number] for number in range(len(expected))]
        assert [verdict.url for verdict in verdicts] == [page.url for page in self.load.pages]
        uniques = [[n for n, each in enumerate(some) if each.verdict is Kind.UNIQUE] for some in (verdicts, expected)]
        assert uniques[0] == uniques[1]
        assert [verdict.verdict for verdict in verdicts] == [verdict.verdict for verdict in expected]
        for number, verdict in last.items():
            if verdict.duplicate_of is not None:
                assert number_of(verdict.duplicate_of.document, settings) < number

    async def check_corpus(self) -> None:
        """Check that every settled document is in the corpus."""
        corpus = Corpus(self.deployment.settings.corpus)
        settled = {verdict.document for verdict in self.follower.last.values() if verdict.verdict is not Kind.SKIPPED}
        deadline = time.monotonic() + 30
        while missing := settled - {
            f"{partition}:{offset}"
            for file in corpus.files()
            for batch in corpus.read(file, ["partition", "offset"])
            for partition, offset in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        }:
            assert time.monotonic() < deadline, f"expected in the corpus: {sorted(missing)[:20]}"
            await asyncio.sleep(1)

    def recoveries(self) -> list[float]:
        """Return for each fault the seconds until its last late page had a verdict, or 0 if no page was late."""
        late = sorted(
            at for number, at in self.follower.first_at.items() if at - self.load.sent_at[number] > self._late_seconds
        )
        ends = [*self._began[1:], float("inf")]
        return [
            max((at - began for at in late if began <= at < end), default=0.0)
            for began, end in zip(self._began, ends, strict=True)
        ]

    def measured(self) -> dict[str, float | int]:
        """Return the measurements for the table."""
        recoveries = self.recoveries()
        return {
            "times": len(recoveries),
            "pages": len(self.load.pages),
            "longest_pause_s": round(self.follower.longest_pause(), 1),
            "recovery_s": round(median(recoveries), 1),
            "longest_recovery_s": round(max(recoveries), 1),
            "workers_that_ended": self.revived,
        }

    def _next_worker(self) -> Worker:
        worker = self.deployment.workers[self._turn % len(self.deployment.workers)]
        self._turn += 1
        return worker

    def _next_node(self) -> kafka.Node:
        self._turn += 1
        return self.cluster.nodes[self._turn % len(self.cluster.nodes)]

    def _logs(self) -> str:
        return "\n".join(f"{worker.log}:\n{worker.log.read_text()[-1500:]}" for worker in self.deployment.workers)


Fault = Callable[[Outage], Awaitable[None]]

"""A long, steady load under which memory and latency must not grow.

    python tests/faults/soak.py --minutes 60 --out DIR

One worker of each service runs on a broker of its own. Without --rate the load is half of the highest rate of this
machine, which is measured first and includes the generation of pages. An offline pass begins in each third of the time.
The program writes soak.json and two charts. Its exit code is 1 if a bound is broken:

- The memory of every worker, without tables and mapped state, stays below the sum of what its parts may use, a running
  pass included. After the first third, and while no pass runs, memory without caches grows per hour by less than a
  tenth of this bound. Caches are excluded because they fill and then stay at their size. In runs of less than 30
  minutes, or with less than 10 minutes without a pass, growth is not judged: it cannot be distinguished from noise.
- The median and the 99th percentile of the time from a page to its verdict are in the last third at most 50% higher
  than in the first.
- Every worker ends within a minute of SIGTERM.

Pages are removed from the log soon after they are read, to save disk space. The other data take about 8 KB per page.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from aiokafka import AIOKafkaConsumer, TopicPartition  # noqa: E402
from aiokafka.admin import AIOKafkaAdminClient  # noqa: E402
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType  # noqa: E402

from neardup.deployment.topics import topic_specs  # noqa: E402
from neardup.evaluation.svg_chart import Series, svg_of  # noqa: E402
from neardup.messages.topics import Topics  # noqa: E402
from neardup.messages.verdicts import read_verdict  # noqa: E402
from neardup.settings import Settings  # noqa: E402
from tests.faults.load import SteadyLoad, sampled  # noqa: E402
from tests.faults.vitals import MEGABYTE, Vitals, bounds, take_vitals  # noqa: E402
from tests.services.workers import Deployment, Worker  # noqa: E402
from tests.support.brokers import find_broker  # noqa: E402

SERVICES = ("featurizer", "shard", "aggregator", "recluster")
BACKLOG = 20_000
"""Number of pages per measurement of the highest rate: enough for ten seconds, so that the rate is sustained."""
PAGES_KEPT_MS = 600_000
SAMPLE_SECONDS = 5.0
STOP_SECONDS = 60.0
"""Grace period of a stopped worker, as in docker-compose.yml."""
GROWTH = 0.1
LONG_MINUTES = 30
QUIET_MINUTES = 10
LATER = 1.5
SETTLED = 1.1


class Latencies:
    """Reads new verdicts and collects their latencies by the minute in which the page was sent."""

    def __init__(self, settings: Settings) -> None:
        self.count = 0
        self.by_minute: dict[int, list[float]] = {}
        self._settings = settings
        self._consumer = AIOKafkaConsumer(bootstrap_servers=settings.broker, auto_offset_reset="earliest")

    async def open(self) -> None:
        """Start to read after the current end of the topic."""
        await self._consumer.start()
        topic = Topics.under(self._settings.prefix).verdicts
        partitions = [TopicPartition(topic, number) for number in range(self._settings.verdict_partitions)]
        self._consumer.assign(partitions)
        await self._consumer.seek_to_end(*partitions)

    async def run(self) -> None:
        """Read until cancelled."""
        try:
            while True:
                for records in (await self._consumer.getmany(timeout_ms=200)).values():
                    for record in records:
                        verdict = read_verdict(record.value)
                        if verdict.revision == 0 and verdict.latency_ms is not None:
                            self.count += 1
                            sent = record.timestamp - verdict.latency_ms
                            self.by_minute.setdefault(int(sent // 60_000), []).append(verdict.latency_ms)
        finally:
            await self._consumer.stop()

    def percentiles(self) -> list[dict[str, float]]:
        """Return p50 and p99 in milliseconds for every whole minute."""
        minutes = sorted(self.by_minute)[1:-1] or sorted(self.by_minute)
        return [
            {
                "minute": number,
                "pages": len(self.by_minute[minute]),
                "p50": float(np.percentile(self.by_minute[minute], 50)),
                "p99": float(np.percentile(self.by_minute[minute], 99)),
            }
            for number, minute in enumerate(minutes, 1)
        ]


async def soak(settings: Settings, directory: Path, minutes: float, rate: float | None) -> dict[str, Any]:
    """Run the load and return all measurements."""
    deployment = Deployment(settings, directory)
    assert deployment.neardup("topics", "create").returncode == 0
    await _keep_few_pages(settings)
    workers = {name: deployment.start("neardup", "worker", name) for name in SERVICES}
    try:
        for worker in workers.values():
            await asyncio.to_thread(worker.await_ready, 120)
        if rate is None:
            rate = await _settled_rate(settings) / 2
        seen = await _under_load(settings, workers, directory, minutes, rate)
    finally:
        late = stop(workers)
    return seen | {"late_to_stop": late}


async def _keep_few_pages(settings: Settings) -> None:
    pages = Topics.under(settings.prefix).pages
    (spec,) = (spec for spec in topic_specs(settings) if spec.name == pages)
    kept = {**spec.configs, "retention.ms": str(PAGES_KEPT_MS)}
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.broker)
    await admin.start()
    try:
        (answer,) = await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, pages, configs=kept)])
        assert answer.resources[0][0] == 0, f"expected to set the retention of {pages}, got {answer}"
    finally:
        await admin.close()


def stop(workers: Mapping[str, Worker], grace: float = STOP_SECONDS) -> list[str]:
    """Stop the workers. Kill those that do not end in time and return their names; the measurements are kept."""
    late = []
    for worker in workers.values():
        worker.process.terminate()
    deadline = time.monotonic() + grace
    for name, worker in workers.items():
        try:
            worker.process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            worker.kill()
            late.append(name)
    return late


async def _settled_rate(settings: Settings) -> float:
    """Return the highest rate when it no longer rises: in a new checkout, workers first compile their kernels."""
    best, seed = await _highest_rate(settings, 100), 101
    while (rate := await _highest_rate(settings, seed)) > SETTLED * best:
        best, seed = rate, seed + 1
    return max(best, rate)


async def _highest_rate(settings: Settings, seed: int) -> float:
    """Send pages like those of the load without pauses. Return the pages per second. Each seed makes other pages."""
    load, latencies = SteadyLoad(settings, 1e9, sampled(seed), keep_pages=False), Latencies(settings)
    await latencies.open()
    reading = asyncio.create_task(latencies.run())
    started = time.monotonic()
    await load.run(BACKLOG)
    while latencies.count < BACKLOG:
        await asyncio.sleep(0.05)
    await _cancelled(reading)
    return BACKLOG / (time.monotonic() - started)


async def _under_load(
    settings: Settings, workers: dict[str, Worker], state: Path, minutes: float, rate: float
) -> dict[str, Any]:
    load, latencies = SteadyLoad(settings, rate, sampled(52), keep_pages=False), Latencies(settings)
    await latencies.open()
    tasks = [asyncio.create_task(load.run()), asyncio.create_task(latencies.run())]
    seen: list[dict[str, Vitals]] = []
    started = time.time()
    try:
        while time.time() - started < 60 * minutes:
            await asyncio.sleep(SAMPLE_SECONDS)
            assert not tasks[0].done(), "expected the load to be still running"
            seen.append(await asyncio.to_thread(take_vitals, workers, state))
        load.stop()
        await tasks[0]
    finally:
        for task in tasks:
            await _cancelled(task)
    return {
        "minutes": minutes,
        "rate": rate,
        "cores": os.cpu_count(),
        "pages": len(load.sent_at),
        "bounds_mb": bounds(settings, len(load.sent_at)),
        "latency_ms": latencies.percentiles(),
        "services": {name: _series(started, [each[name] for each in seen]) for name in workers},
    }


def _series(started: float, vitals: Sequence[Vitals]) -> dict[str, list[float]]:
    return {
        "seconds": [round(each.at - started, 1) for each in vitals],
        "memory_mb": [round(each.memory / MEGABYTE, 1) for each in vitals],
        "caches_mb": [round(each.caches / MEGABYTE, 1) for each in vitals],
        "tables_mb": [round(each.tables / MEGABYTE, 1) for each in vitals],
        "lag": [each.lag for each in vitals],
        "rebalances": [each.rebalances for each in vitals],
        "passing": [each.passing for each in vitals],
    }


def judged(seen: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each bound with its measurement and the result."""
    verdicts = []
    for name, series in seen["services"].items():
        most, bound = max(series["memory_mb"]), seen["bounds_mb"][name]
        verdicts.append({"what": f"{name}: peak memory, MB", "got": most, "bound": bound, "holds": most <= bound})
        third = len(series["seconds"]) // 3
        without_pass = ~np.array(series["passing"][third:], bool)
        hours = np.array(series["seconds"][third:]) / 3600
        rest = (np.array(series["memory_mb"]) - series["caches_mb"])[third:]
        quiet_minutes = without_pass.mean() * seen["minutes"] * 2 / 3
        long_enough = seen["minutes"] >= LONG_MINUTES and quiet_minutes >= QUIET_MINUTES
        slope = float(np.polyfit(hours[without_pass], rest[without_pass], 1)[0]) if without_pass.sum() > 1 else 0.0
        verdicts.append(
            {
                "what": f"{name}: growth of memory without caches, MB/h",
                "got": round(slope, 1),
                "bound": GROWTH * bound,
                "holds": slope <= GROWTH * bound if long_enough else None,
            }
        )
    minutes = seen["latency_ms"]
    third = max(len(minutes) // 3, 1)
    for name in ("p50", "p99"):
        first, last = (statistics.median(each[name] for each in some) for some in (minutes[:third], minutes[-third:]))
        bound = LATER * first
        verdicts.append(
            {"what": f"{name}, ms, at the end", "got": round(last), "bound": round(bound), "holds": 0 < last <= bound}
        )
    late = len(seen["late_to_stop"])
    verdicts.append({"what": "workers that did not stop in time", "got": late, "bound": 0, "holds": late == 0})
    return verdicts


def _charts(seen: dict[str, Any], out: Path) -> None:
    about = f"{seen['rate']:,.0f} pages/s for {seen['minutes']:g} minutes"
    memory = [
        Series(name, [(at / 60, mb) for at, mb in zip(series["seconds"], series["memory_mb"], strict=True)])
        for name, series in seen["services"].items()
    ]
    latency = [Series(name, [(each["minute"], each[name]) for each in seen["latency_ms"]]) for name in ("p50", "p99")]
    up = "memory without tables and mapped state, MB"
    (out / "memory.svg").write_text(svg_of(memory, title=about, across="minutes", up=up))
    (out / "latency.svg").write_text(svg_of(latency, title=about, across="minutes", up="page to verdict, ms"))


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="default %(default)s")
    parser.add_argument("--rate", type=float, help="pages per second (default: half of the highest rate)")
    parser.add_argument("--out", type=Path, default=ROOT / ".run" / "soak", help="default %(default)s")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, find_broker(Path(directory) / "kafka") as broker:
        settings = Settings(
            broker=broker.bootstrap, prefix="soak", corpus_seconds=10, recluster_seconds=20 * options.minutes
        )
        seen = asyncio.run(soak(settings, Path(directory), options.minutes, options.rate))
    # Write the measurements of the hour before they are judged, which may fail.
    (options.out / "soak.json").write_text(json.dumps(seen, indent=1) + "\n")
    _charts(seen, options.out)
    seen["judged"] = judged(seen)
    (options.out / "soak.json").write_text(json.dumps(seen, indent=1) + "\n")
    for each in seen["judged"]:
        result = {True: "holds", False: "BROKEN", None: "too short to tell"}[each["holds"]]
        print(f"{each['what']:50} {each['got']:>10,} bound {each['bound']:>8,.0f}  {result}")
    print(f"{seen['pages']:,} pages; written to {options.out}")
    sys.exit(any(each["holds"] is False for each in seen["judged"]))


if __name__ == "__main__":
    main()

"""Tests of resharding on a real broker in the middle of a crawl, to other slices and owners. Workers run in-process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from neardup.deployment.deployment import group_of, make_runner
from neardup.deployment.topics import topic_specs
from neardup.errors import NotAtRest, Retired, TopicMismatch
from neardup.log.kafka import KafkaLog, KafkaPartitions, look
from neardup.messages.topics import Topics
from neardup.resharding.cluster import ClusterResharding
from neardup.resharding.resharding import Resharding
from neardup.sample import sample_crawl
from neardup.settings import Settings
from tests.services.test_stream import check, last_verdicts, send
from tests.services.workers import Deployment

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker]

PAGES = [made.page for made in sample_crawl(240, seed=8, mean_bytes=8000)]
HALF = len(PAGES) // 2


class Crash(Exception):
    pass


@asynccontextmanager
async def running(settings: Settings, *names: str) -> AsyncIterator[None]:
    """Run workers of these services, and stop them in order at the end."""
    async with AsyncExitStack() as stack:
        tasks = []
        runners = []
        for name in names:
            log = await stack.enter_async_context(KafkaLog(settings))
            runners.append(make_runner(name, settings, log))
            tasks.append(asyncio.create_task(runners[-1].run()))
        try:
            yield
        finally:
            for runner in runners:
                runner.stop()
            await asyncio.gather(*tasks)


async def reshard(settings: Settings, scratch: Path, *, crash_at: str = "nowhere") -> Settings:
    """Reshard to 3 owners and more slices; optionally crash before the end."""
    resharding = Resharding.of(settings, owners=3, slice_bits=1, band_slice_bits=2)

    def told(line: str) -> None:
        if crash_at in line:
            raise Crash

    async with KafkaLog(settings) as log, KafkaPartitions(settings) as partitions:
        await ClusterResharding(resharding, log, partitions, scratch, on_step=told).run()
    return resharding.new.settings


async def count(settings: Settings, topic: str) -> int:
    return (await look(settings, [topic], [])).topics[topic].records


async def until_taken(settings: Settings, service: str, topic: str) -> None:
    group = group_of(service, settings)
    async with asyncio.timeout(60):
        while True:
            view = await look(settings, [topic], [group])
            if view.topics[topic].records and not any(view.groups[group].lag(view.topics[topic]).values()):
                return
            await asyncio.sleep(0.1)


async def test_the_second_half_of_a_crawl_gets_the_same_verdicts_as_without_resharding(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As with large slices, not every checkpoint of a shard writes its whole content.
    monkeypatch.setattr("neardup.stream.shard.stage._SMALL", 0)
    monkeypatch.setattr("neardup.resharding.cluster._SAVE_EVERY", 1)
    old = replace(deployment.settings, tables=4, bands="6x8")
    topics = Topics.under(old.prefix)
    await KafkaLog(old).create_topics(topic_specs(old))
    await send(old, PAGES[:HALF])
    # Without shards, all documents wait for answers.
    async with running(old, "featurizer", "aggregator"):
        await until_taken(old, "featurizer", topics.pages)
        with pytest.raises(NotAtRest, match="expected no workers, got 1: stop them first"):
            await reshard(old, tmp_path / "a")
    with pytest.raises(
        NotAtRest, match=r"expected (no pending document, got \d+ at owner|every record to be processed)"
    ):
        await reshard(old, tmp_path / "b")
    async with running(old, "shard", "aggregator"):
        before = await last_verdicts(old, HALF)
        await until_taken(old, "aggregator", topics.inbox)
    emitted = await count(old, topics.verdicts)

    with pytest.raises(Crash):
        await reshard(old, tmp_path / "c", crash_at="shard partition 5")
    deployment.settings = old
    done = await asyncio.to_thread(deployment.neardup, "reshard", "--owners", "3", "--dry-run")
    assert done.returncode == 0, done
    assert "6 shard partitions and 2 owners become 6 and 3" in done.stdout
    assert "NEARDUP_GENERATION=1  (was 0)" in done.stdout
    new = await reshard(old, tmp_path / "d")
    with pytest.raises(Retired, match="got one that was already resharded: continue with NEARDUP_GENERATION=1"):
        await reshard(old, tmp_path / "e")
    for service in ("shard", "aggregator"):
        late = replace(old, state=tmp_path / "late")
        async with KafkaLog(late) as log, asyncio.timeout(30):
            with pytest.raises(Retired, match="Start the services with NEARDUP_GENERATION=1"):
                await make_runner(service, late, log).run()

    await send(new, PAGES[HALF:], HALF)
    # The new state directory is empty: everything is restored from the seeds.
    new = replace(new, state=tmp_path / "fresh")
    async with running(new, "featurizer", "shard", "aggregator"):
        verdicts = await last_verdicts(new, len(PAGES))
    check(new, verdicts, PAGES, tmp_path / "embedded")
    assert verdicts[:HALF] == before
    # No verdict was repeated: there is one for each later page, and there are a few revisions.
    assert HALF <= await count(new, topics.verdicts) - emitted < 1.1 * HALF
    assert await count(new, topics.dead_letters) == 0


async def test_topics_of_other_settings_are_refused(kafka_settings: Settings, tmp_path: Path) -> None:
    await KafkaLog(kafka_settings).create_topics(topic_specs(kafka_settings))
    with pytest.raises(TopicMismatch, match="expected 22 partitions, got 12: use the settings of its deployment"):
        await reshard(replace(kafka_settings, slice_bits=1, band_slice_bits=1, owners=2), tmp_path)

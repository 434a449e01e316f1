"""Test of the recluster service on a real broker: a pass starts by timer, publishes clusters, and revises a verdict."""

import asyncio
import json
import random
import re
from dataclasses import replace
from urllib.parse import quote

import pytest

from neardup.log.kafka import KafkaLog
from neardup.messages.topics import Topics
from neardup.sample import sample_crawl
from neardup.types import Kind, Page, Relation
from tests.log.test_contract import Recorder, join
from tests.services.test_stream import last_verdicts, send
from tests.services.workers import Deployment

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker]

PAGES = 120


async def test_a_pass_publishes_clusters_revises_a_verdict_and_forgets(deployment: Deployment) -> None:
    deployment.settings = settings = replace(deployment.settings, recluster_seconds=3, corpus_seconds=0)
    assert deployment.neardup("topics", "create").returncode == 0
    services = ("featurizer", "shard", "aggregator", "recluster")
    workers = {name: deployment.start("neardup", "worker", name) for name in services}
    for worker in workers.values():
        await asyncio.to_thread(worker.await_ready)
    # A part of a long page resembles it too little for any table, but shares its shingles.
    words = [f"w{number}" for number in random.Random(3).choices(range(5000), k=900)]
    whole = Page("http://a.example/whole", html=("<p>" + " ".join(words)).encode())
    part = Page("http://a.example/part", html=("<p>" + " ".join(words[100:320])).encode())
    crawl = [made.page for made in sample_crawl(PAGES, seed=8, mean_bytes=8000)]
    await send(settings, [*crawl, whole, part])

    async with asyncio.timeout(180):
        while True:
            verdicts = await last_verdicts(settings, PAGES + 2, 120)
            if verdicts[-1].verdict is Kind.DUPLICATE:
                break
    revised = verdicts[-1]
    assert (revised.url, revised.relation, revised.revision) == (part.url, Relation.CONTAINED, 2)
    assert revised.duplicate_of is not None
    assert (revised.duplicate_of.url, revised.found_by) == (whole.url, ("offline",))
    assert verdicts[-2].verdict is Kind.UNIQUE

    urls = {page.url for page in crawl} - {v.url for v in verdicts if v.verdict is Kind.SKIPPED}
    clusters: dict[str, dict[str, str]] = {}
    async with KafkaLog(settings) as log, asyncio.timeout(60):
        consumer, recorder = await join(log, Topics.under(settings.prefix).clusters, "check", Recorder())
        while not urls <= clusters.keys():
            for records in (await consumer.poll(recorder.mine, timeout=0.5, max_records=5000)).values():
                for record in records:
                    assert record.key is not None
                    clusters[record.key.decode()] = json.loads(record.value or b"")
        await consumer.close()
    assert clusters[whole.url]["relation"] == "first"
    # Every copy that the stream found is in the cluster of its original.
    for verdict in verdicts:
        if verdict.relation is Relation.IDENTICAL and verdict.duplicate_of is not None:
            copied = [other for other in verdicts if other.document == verdict.duplicate_of.document]
            assert clusters[verdict.url]["cluster"] == clusters[copied[0].url]["cluster"]

    status, body = workers["recluster"].get(f"/api/lookup?url={quote(part.url, safe='')}")
    assert status == 200, body
    assert json.loads(body)["url"] == part.url
    _, metrics = workers["recluster"].get("/metrics")
    assert 'neardup_passes_total{result="done"}' in metrics
    (overturned,) = re.findall(r"^neardup_overturned_verdicts_total (\d+)", metrics, re.MULTILINE)
    assert int(overturned) >= 1

    # The forgotten page is in no results, and the page contained in it is unique again.
    assert deployment.neardup("forget", whole.url).returncode == 0
    async with asyncio.timeout(90):
        while workers["recluster"].get(f"/api/lookup?url={quote(whole.url, safe='')}")[0] != 404:
            await asyncio.sleep(0.5)
        while (revised := (await last_verdicts(settings, PAGES + 2, 120))[-1]).verdict is Kind.DUPLICATE:
            pass
    assert (revised.url, revised.revision) == (part.url, 3)
    for worker in workers.values():
        assert worker.terminate() == 0, worker.log.read_text()

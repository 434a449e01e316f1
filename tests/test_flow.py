"""Start here: pages go in at one end, verdicts come out at the other, on every kind of log."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from neardup import dead_letters
from neardup.log import Log, Output
from neardup.settings import Settings
from neardup.topics import Topics, topic_specs
from neardup_services.catalogue import SERVICES, make_runner
from tests.log.test_contract import Recorder, join, read


@pytest.mark.real_broker
async def test_a_page_from_topic_to_verdict(log: Log, tmp_path: Path) -> None:
    # A deployment: names, topics, one worker of each service.
    settings = Settings(prefix=f"flow-{tmp_path.name[:40]}", state=tmp_path / "state", page_partitions=1)
    topics = Topics.under(settings.prefix)
    await log.create_topics([replace(spec, configs={}) for spec in topic_specs(settings)])
    runners = [make_runner(name, settings, log) for name in SERVICES]
    running = [asyncio.create_task(runner.run()) for runner in runners]

    # The crawler's side: a page, the same page on a mirror, the first one again, and something that is no page.
    page = {"url": "https://a.example/", "html": "<p>To be crawled or not</p>", "fetched_at": "2026-01-01T00:00:00Z"}
    mirror = {"url": "https://mirror.example/a", "html": page["html"]}
    values = [json.dumps(each).encode() for each in (page, mirror, page)] + [b'{"url": 7}']
    await log.send([Output(topics.pages, 0, None, value) for value in values])

    consumer, recorder = await join(log, topics.verdicts, "crawler", Recorder())
    records = await read(consumer, recorder, 3)
    await consumer.close()
    by_document = {verdict["document"]: verdict for verdict in (json.loads(record.value or b"") for record in records)}
    first, copy, recrawl = (by_document[f"0:{offset}"] for offset in range(3))
    assert (first["verdict"], first["duplicate_of"], first["url"]) == ("unique", None, page["url"])
    assert first["fetched_at"] == page["fetched_at"]
    for verdict in (copy, recrawl):
        assert (verdict["verdict"], verdict["relation"]) == ("duplicate", "identical")
        assert verdict["duplicate_of"] == {"url": page["url"], "document": "0:0"}
    assert (copy["same_url"], recrawl["same_url"]) == (False, True)

    consumer, recorder = await join(log, topics.dead_letters, "operator", Recorder())
    (record,) = await read(consumer, recorder, 1)
    await consumer.close()
    letter = dead_letters.decode(record.value)
    assert (letter.offset, letter.value, letter.reason) == (3, values[3], "invalid-page")

    for runner in runners:
        runner.stop()
    await asyncio.gather(*running)

"""Start here: pages are sent to a topic, and verdicts come out of another one, on every kind of log."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from neardup.deployment.deployment import SERVICES, make_runner
from neardup.deployment.topics import topic_specs
from neardup.log import Log, Output
from neardup.messages import dead_letters
from neardup.messages.topics import Topics
from neardup.settings import Settings
from tests.log.test_contract import Recorder, join, read


@pytest.mark.real_broker
async def test_a_page_from_topic_to_verdict(log: Log, tmp_path: Path) -> None:
    # A deployment: settings, topics, and one worker of each service.
    settings = Settings(prefix=f"flow-{tmp_path.name[:40]}", state=tmp_path / "state", page_partitions=1)
    topics = Topics.under(settings.prefix)
    await log.create_topics([replace(spec, configs={}) for spec in topic_specs(settings)])
    runners = [make_runner(name, settings, log) for name in SERVICES]
    running = [asyncio.create_task(runner.run()) for runner in runners]

    # The crawler sends a page, its copy on a mirror, a recrawl of it, the page with an added headline, another page, a
    # page with almost no text, and a value that is not a page.
    text = "The river rises in the hills to the north of the old town and runs for ninety miles to the sea. " + (
        "In dry summers it is little more than a brook, but after the thaw it floods the meadows below the bridge, and "
        "nobody who has seen that would build a house there, whatever the price of the land may be this year."
    )
    page = {"url": "https://a.example/", "html": f"<p>{text}</p>", "fetched_at": "2026-01-01T00:00:00Z"}
    mirror = {"url": "https://mirror.example/a", "html": page["html"]}
    edited = {"url": "https://a.example/new", "html": f"<h1>News</h1><p>{text}</p>"}
    other = {
        "url": "https://b.example/",
        "html": "<p>Take flour, two eggs and a cup of milk, stir, and let it rest.</p>",
    }
    short = {"url": "https://c.example/", "html": "<p>Not found</p>"}
    pages = [page, mirror, page, edited, other, short]
    values = [json.dumps(each).encode() for each in pages] + [b'{"url": 7}']
    for value in values:  # Send one by one, so that the order of the pages is the order of sending.
        await log.send([Output(topics.pages, 0, None, value)])

    consumer, recorder = await join(log, topics.verdicts, "crawler", Recorder())
    last: dict[str, dict[str, Any]] = {}
    while len(last) < len(pages):
        for record in await read(consumer, recorder, 1):
            verdict = json.loads(record.value or b"")
            last[verdict["document"]] = verdict
    await consumer.close()
    first, copy, recrawl, near, new, skipped = (last[f"0:{offset}"] for offset in range(6))
    assert (first["verdict"], first["duplicate_of"], first["url"]) == ("unique", None, page["url"])
    assert first["fetched_at"] == page["fetched_at"]
    for verdict in (copy, recrawl):
        assert (verdict["verdict"], verdict["relation"]) == ("duplicate", "identical")
        assert verdict["duplicate_of"] == {"url": page["url"], "document": "0:0"}
    assert (copy["same_url"], recrawl["same_url"]) == (False, True)
    assert (near["verdict"], near["relation"], near["duplicate_of"]["document"]) == ("duplicate", "near", "0:0")
    assert near["resemblance"] > 0.8
    assert near["found_by"]
    assert new["verdict"] == "unique"
    assert (skipped["verdict"], skipped["reason"]) == ("skipped", "too short")

    consumer, recorder = await join(log, topics.dead_letters, "operator", Recorder())
    (record,) = await read(consumer, recorder, 1)
    await consumer.close()
    letter = dead_letters.decode(record.value)
    assert (letter.offset, letter.value, letter.reason) == (6, values[6], "invalid-page")

    for runner in runners:
        runner.stop()
    await asyncio.gather(*running)

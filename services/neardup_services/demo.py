"""The demo: a small made crawl through the real stages over the in-process log, then a summary."""

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from neardup.deployment import SERVICES, make_runner
from neardup.log import Output, Partition
from neardup.log.memory import MemoryLog
from neardup.page import write_page
from neardup.settings import Settings
from neardup.topics import Topics, topic_specs
from neardup.types import Kind, Page, Verdict
from neardup.verdict import read_verdict

_WORDS = ("crawl", "page", "copy", "mirror", "archive", "index", "link", "host", "cache", "news", "river", "stone")


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What came out."""

    verdicts: list[Verdict]
    dead_letters: int


def made_crawl(pages: int, seed: int) -> Iterator[Page]:
    """Pages of a few hosts, a third of them copied byte for byte onto mirrors."""
    draw = random.Random(seed)  # noqa: S311
    originals: list[Page] = []
    for number in range(pages):
        if originals and draw.random() < 1 / 3:
            original = draw.choice(originals)
            yield replace(original, url=f"https://mirror{draw.randrange(3)}.example/{number}")
            continue
        words = " ".join(draw.choices(_WORDS, k=draw.randint(40, 400)))
        html = f"<html><title>Page {number}</title><body><p>{words}</p></body></html>".encode()
        page = Page(url=f"https://host{draw.randrange(20)}.example/{number}", html=html)
        originals.append(page)
        yield page


async def run_demo(pages: list[Page], state: Path, settings: Settings) -> DemoResult:
    """Feed the pages, run every service in this process, return when each page has its verdict or dead letter."""
    # One partition: the order of the pages is then the order in which they were made.
    settings = replace(settings, state=state, page_partitions=1, verdict_partitions=1)
    topics = Topics.under(settings.prefix)
    log = MemoryLog()
    await log.start()
    await log.create_topics(topic_specs(settings))
    await log.send([Output(topics.pages, None, page.url.encode(), write_page(page)) for page in pages])
    runners = [make_runner(name, settings, log) for name in SERVICES]
    running = [asyncio.create_task(runner.run()) for runner in runners]
    verdicts: list[Verdict] = []
    letters = Partition(topics.dead_letters, 0)
    while len({verdict.document for verdict in verdicts}) + log.end(letters) < len(pages):
        for task in running:
            if task.done():
                task.result()
        await asyncio.sleep(0.05)
        arrived = log.read(Partition(topics.verdicts, 0), len(verdicts), len(pages))
        verdicts += [read_verdict(record.value or b"") for record in arrived]
    for runner in runners:
        runner.stop()
    await asyncio.gather(*running)
    await log.stop()
    return DemoResult(verdicts, log.end(letters))


def demo(pages: int, seed: int, settings: Settings) -> str:
    """Run and summarise."""
    crawl = list(made_crawl(pages, seed))
    with tempfile.TemporaryDirectory() as state:
        result = asyncio.run(run_demo(crawl, Path(state), settings))
    last = {verdict.document: verdict for verdict in sorted(result.verdicts, key=lambda each: each.revision)}
    kinds = Counter(verdict.verdict for verdict in last.values())
    copied = Counter(verdict.url.split("/")[2] for verdict in last.values() if verdict.verdict is Kind.DUPLICATE)
    in_order = sorted(last.values(), key=lambda each: int(each.document.partition(":")[2]))
    example = next((verdict for verdict in in_order if verdict.duplicate_of), None)
    lines = [f"{len(crawl)} pages: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())]
    lines.append(f"dead letters: {result.dead_letters}")
    lines += [f"  {host}: {count} copies" for host, count in copied.most_common(3)]
    if example is not None and example.duplicate_of is not None:
        lines.append(f"for example {example.url} is {example.relation} to {example.duplicate_of.url}")
    return "\n".join(lines)

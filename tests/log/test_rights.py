"""Tests that the rights in deploy/docs/operations/broker-rights.md suffice for a crawl, and that each is necessary."""

import asyncio
import logging
import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from neardup.deployment.deployment import SERVICES, corpus_address, group_of, make_runner
from neardup.deployment.topics import topic_specs
from neardup.errors import NotAuthorized
from neardup.log import Output
from neardup.log.kafka import KafkaLog, look
from neardup.messages.pages import CANARY_HEADER, write_page
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.offline.corpus.corpus import Corpus
from neardup.runtime.runner import Runner
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup.types import Page
from neardup_services.worker.recluster_passes import Passes
from tests.log.guarded import Guarded
from tests.log.rights import GRANTS, Rights, acl_of
from tests.log.test_contract import Recorder, read
from tests.services.workers import BIN, environment_of

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.real_broker,
]

TOPICS = Topics.under("neardup")
NO_PAGE = b'{"neither": "url nor content"}'
PAGES = [made.page for made in sample_crawl(40, seed=4, mean_bytes=8000)]
# A part of a long page resembles it too little for any table. The offline pass finds the pair and revises the verdict.
WORDS = [f"w{number}" for number in random.Random(3).choices(range(5000), k=900)]
WHOLE = Page("http://a.example/whole", html=("<p>" + " ".join(WORDS)).encode())
PAGE_LINE = '{"url": "http://a.example/", "text": "a page that a crawler has fetched"}\n'
PART = Page("http://a.example/part", html=("<p>" + " ".join(WORDS[100:320])).encode())


@pytest.fixture(scope="module")
def rights(guarded: Guarded) -> Rights:
    made = Rights(guarded.settings)
    made.grant(GRANTS)
    return made


def settings_of(guarded: Guarded, user: str, state: Path) -> Settings:
    return guarded.settings_of(
        user, state=state / user, checkpoint_seconds=0.2, corpus_seconds=0.0, tables=4, canary_share=0.9
    )


@asynccontextmanager
async def running(name: str, settings: Settings) -> AsyncIterator[tuple[Runner, KafkaLog]]:
    async with KafkaLog(settings) as log:
        runner = make_runner(name, settings, log)
        task = asyncio.create_task(runner.run())
        try:
            yield runner, log
        finally:
            runner.stop()
            await task


async def send(guarded: Guarded, tmp_path: Path, values: list[bytes]) -> None:
    async with KafkaLog(settings_of(guarded, "crawler", tmp_path)) as log:
        await log.send([Output(TOPICS.pages, None, b"%d" % number, value) for number, value in enumerate(values)])


async def test_a_crawl_needs_no_more_than_the_listed_rights(guarded: Guarded, rights: Rights, tmp_path: Path) -> None:
    deployer = settings_of(guarded, "deployer", tmp_path)
    for expected in ({"created"}, {"exists"}):
        assert {*(await KafkaLog(deployer).create_topics(topic_specs(deployer))).values()} == expected
    await send(guarded, tmp_path, [NO_PAGE, *(write_page(page) for page in PAGES)])
    recluster = settings_of(guarded, "recluster", tmp_path)
    async with (
        running("featurizer", settings_of(guarded, "featurizer", tmp_path)),
        running("shard", settings_of(guarded, "shard", tmp_path)),
        running("aggregator", settings_of(guarded, "aggregator", tmp_path)),
        running("recluster", recluster) as (archiving, log),
        running("canary", settings_of(guarded, "canary", tmp_path)),
        KafkaLog(settings_of(guarded, "crawler", tmp_path)) as crawler,
    ):
        recorder = Recorder()
        consumer = await crawler.consumer(TOPICS.verdicts, "crawler", recorder)
        seen: set[str] = set()
        while seen != {page.url for page in PAGES}:
            # Some pages are revised, so a topic may have more than one record per page.
            seen |= {read_verdict(record.value or b"").url for record in await read(consumer, recorder, 1, 60)}
        await consumer.close()
        viewer = settings_of(guarded, "viewer", tmp_path)
        async with asyncio.timeout(30):
            while True:
                view = await look(viewer, [*vars_of(TOPICS)], [group_of(name, viewer) for name in SERVICES])
                lag = view.groups["neardup.recluster"].lag(view.topics[TOPICS.documents])
                planted = view.topics[TOPICS.canaries].records
                if planted and view.topics[TOPICS.documents].records and not any(lag.values()):
                    break
        assert view.topics[TOPICS.dead_letters].records == 1
        await Passes(recluster, log.send).run()
        assert (await look(viewer, [TOPICS.clusters], [])).topics[TOPICS.clusters].records > 0
        assert archiving.not_ready() is None


def vars_of(topics: Topics) -> list[str]:
    return [getattr(topics, name) for name in Topics.__slots__]


@pytest.fixture(scope="module")
def every_topic(guarded: Guarded, rights: Rights, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Fill each topic with records to process and a record to reject, so that a service needs all of its rights.

    Returns the address of the resulting corpus.
    """
    state = tmp_path_factory.mktemp("filling")
    recluster = settings_of(guarded, "recluster", state)
    corpus = Corpus(corpus_address(recluster))

    async def fill() -> None:
        deployer = settings_of(guarded, "deployer", state)
        await KafkaLog(deployer).create_topics(topic_specs(deployer))
        values = [NO_PAGE, *(write_page(page) for page in (*PAGES, WHOLE, PART))]
        await send(guarded, state, values)
        async with KafkaLog(settings_of(guarded, "admin", state)) as log:
            for topic in (TOPICS.probes, TOPICS.inbox, TOPICS.documents):
                await log.send([Output(topic, 0, None, b"no message")])
            # The header marks a canary, whose verdict is sent to another topic than those of pages.
            await log.send([Output(TOPICS.pages, 0, b"0", values[1], ((CANARY_HEADER, b"canary: a copy"),))])
        async with (
            running("featurizer", settings_of(guarded, "featurizer", state)),
            running("shard", settings_of(guarded, "shard", state)),
            running("aggregator", settings_of(guarded, "aggregator", state)),
            running("recluster", recluster),
            asyncio.timeout(60),
        ):
            while not {WHOLE.url, PART.url} <= urls_of(corpus):
                await asyncio.sleep(0.2)

    asyncio.run(fill())
    return corpus_address(recluster)


def urls_of(corpus: Corpus) -> set[str]:
    return {url for file in corpus.files() for batch in corpus.read(file, ["url"]) for url in batch["url"].to_pylist()}


def needed_by(*users: str) -> list[Any]:
    return [
        pytest.param(name, grant, id=" ".join([name, *grant.split()[5:]]))
        for name in users
        for grant in GRANTS
        if f"User:{name} " in grant
    ]


def of_a_pass(grant: str) -> bool:
    """Return True if the offline pass needs the right for its outputs. The runner alone produces none."""
    return "User:recluster " in grant and acl_of(grant).name in (TOPICS.clusters, TOPICS.verdicts)


def only_writes() -> list[str]:
    """Return the write rights of users with only one such right: without it the broker does not name the topic."""
    writes = [grant for grant in GRANTS if "--operation Write" in grant]
    users = Counter(acl_of(grant).principal for grant in writes)
    return [grant for grant in writes if users[acl_of(grant).principal] == 1]


def missing_without(grant: str) -> str:
    """Return a pattern for the error: it must name the user and the missing right."""
    acl = acl_of(grant)
    missing = "write to any topic" if grant in only_writes() else acl.name
    return rf"the user '{acl.principal.removeprefix('User:')}' .*{missing}.*broker-rights\.md"


@pytest.mark.usefixtures("every_topic")
@pytest.mark.parametrize(
    ("service", "grant"),
    [each for each in needed_by(*SERVICES) if not of_a_pass(str(each.values[1]))],
)
async def test_without_one_right_the_error_names_it(
    guarded: Guarded, rights: Rights, tmp_path: Path, service: str, grant: str
) -> None:
    settings = settings_of(guarded, service, tmp_path)
    with rights.without(grant):
        if service == "featurizer":  # stateless, so it continues after the offset that it has committed
            await send(guarded, tmp_path, [NO_PAGE, write_page(PAGES[0])])
        with pytest.raises(NotAuthorized, match=missing_without(grant)) as raised:
            async with asyncio.timeout(30), KafkaLog(settings) as log:
                await make_runner(service, settings, log).run()
    assert "password" not in str(raised.value)


@pytest.mark.parametrize("grant", [*filter(of_a_pass, GRANTS)], ids=lambda grant: " ".join(grant.split()[5:]))
async def test_a_pass_without_one_right_reports_it_and_the_next_one_publishes_everything(
    guarded: Guarded,
    rights: Rights,
    every_topic: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    grant: str,
) -> None:
    settings = replace(settings_of(guarded, "recluster", tmp_path), corpus=every_topic)
    viewer = settings_of(guarded, "viewer", tmp_path)

    async def published() -> int:
        topic = acl_of(grant).name
        return (await look(viewer, [topic], [])).topics[topic].records

    async def errors_of_a_pass() -> list[str]:
        caplog.clear()
        async with KafkaLog(settings) as log:
            await Passes(settings, log.send).run()
        return [each.getMessage() for each in caplog.records if each.name == "neardup_services.worker.recluster_passes"]

    before = await published()
    caplog.set_level(logging.ERROR)
    with rights.without(grant):
        (error,) = await errors_of_a_pass()
    assert re.search(missing_without(grant), error), error
    assert "password" not in error
    assert await published() == before
    assert await errors_of_a_pass() == []
    assert await published() > before


PRODUCE, STATUS, VERDICTS, LETTERS = ("produce", "-"), ("status",), ("verdicts",), ("dead-letters", "show")


def neardup(settings: Settings, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    environment = environment_of(settings) | {"NEARDUP_SASL_PASSWORD": settings.sasl_password}
    return subprocess.run(
        [BIN / "neardup", *command], env=os.environ | environment, input=PAGE_LINE,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.usefixtures("every_topic")
@pytest.mark.parametrize(
    ("user", "command", "expected"),
    [
        ("crawler", PRODUCE, "1 pages sent"),
        ("viewer", STATUS, TOPICS.verdicts),
        ("viewer", VERDICTS, WHOLE.url),
        ("viewer", LETTERS, "invalid-page"),
    ],
)
def test_a_command_needs_only_the_rights_of_its_user(
    guarded: Guarded, tmp_path: Path, user: str, command: Sequence[str], expected: str
) -> None:
    done = neardup(settings_of(guarded, user, tmp_path), command)
    assert expected in done.stdout + done.stderr
    assert "Error" not in done.stderr


@pytest.mark.usefixtures("every_topic")
@pytest.mark.parametrize(
    ("user", "command", "grant"),
    [
        pytest.param(user, command, grant, id=" ".join([*command, "without", *grant.split()[5:8]]))
        for user, command, operation in (
            ("crawler", PRODUCE, "Write"),
            ("viewer", STATUS, "Read"),
            ("viewer", VERDICTS, "Read"),
        )
        for grant in GRANTS
        if f"User:{user} --operation {operation} " in grant
    ],
)
def test_a_command_without_one_right_reports_it(
    guarded: Guarded, rights: Rights, tmp_path: Path, user: str, command: Sequence[str], grant: str
) -> None:
    with rights.without(grant):
        done = neardup(settings_of(guarded, user, tmp_path), command)
    assert done.returncode == 1
    assert re.search(missing_without(grant), done.stderr), done.stderr
    assert "password" not in done.stderr

"""The rights that deploy/SECURITY.md lists are enough for a crawl, and each of them is needed."""

import asyncio
import importlib
import shlex
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import broker as kafka
from neardup.deployment import SERVICES, group_of, make_runner
from neardup.errors import NotAuthorized
from neardup.log import Output
from neardup.log.kafka import KafkaLog, look
from neardup.page import CANARY_HEADER, write_page
from neardup.runner import Runner
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup.topics import Topics, topic_specs
from neardup.verdict import read_verdict
from neardup_services.passes import Passes
from tests.log.guarded import Guarded
from tests.log.test_contract import Recorder, read

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.real_broker,
    pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven, to start a broker of its own"),
]

rdkafka: Any = importlib.import_module("confluent_kafka.admin")  # its types do not say what it exports
SECURITY = (Path(__file__).parents[2] / "deploy/SECURITY.md").read_text()
GRANTS = [line.strip() for line in SECURITY.splitlines() if line.startswith("    kafka-acls ")]
TOPICS = Topics.under("neardup")
NO_PAGE = b'{"neither": "url nor content"}'
PAGES = [made.page for made in sample_crawl(40, seed=4, mean_bytes=8000)]


def acl_of(grant: str) -> Any:
    """What a line of the document says."""
    words = shlex.split(grant)[1:]
    assert words.pop(0) == "--add"
    said = dict(zip(words[::2], words[1::2], strict=True))
    kind = "topic" if "--topic" in said else "group"
    name = said.pop(f"--{kind}")
    pattern = said.pop("--resource-pattern-type", "literal").upper()
    principal, operation = said.pop("--allow-principal"), said.pop("--operation")
    assert said == {}
    spelled = "".join(f"_{letter}" if letter.isupper() else letter for letter in operation).strip("_").upper()
    return rdkafka.AclBinding(
        rdkafka.ResourceType[kind.upper()], name, rdkafka.ResourcePatternType[pattern], principal, "*",
        rdkafka.AclOperation[spelled], rdkafka.AclPermissionType.ALLOW,
    )  # fmt: skip


def filter_of(acl: Any) -> Any:
    return rdkafka.AclBindingFilter(
        acl.restype, acl.name, acl.resource_pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type
    )


class Rights:
    """Grants and takes away, and returns when the broker goes by it."""

    def __init__(self, settings: Settings) -> None:
        self._admin = rdkafka.AdminClient({
            "bootstrap.servers": settings.broker, "security.protocol": "SASL_SSL", "ssl.ca.location": settings.tls_ca,
            "sasl.mechanism": settings.sasl_mechanism, "sasl.username": settings.sasl_username,
            "sasl.password": settings.sasl_password, "log_level": 0,
        })  # fmt: skip

    def grant(self, grants: list[str]) -> None:
        acls = [acl_of(each) for each in grants]
        for done in self._admin.create_acls(acls).values():
            done.result(20)
        for acl in acls:
            self._await(acl, there=True)

    @contextmanager
    def without(self, grant: str) -> Iterator[None]:
        acl = acl_of(grant)
        for done in self._admin.delete_acls([filter_of(acl)]).values():
            assert len(done.result(20)) == 1
        self._await(acl, there=False)
        yield
        self.grant([grant])

    def _await(self, acl: Any, *, there: bool) -> None:
        deadline = time.monotonic() + 20
        while bool(self._admin.describe_acls(filter_of(acl)).result(20)) is not there:
            assert time.monotonic() < deadline, f"the broker does not know of {acl}"
            time.sleep(0.05)


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


async def test_a_crawl_goes_through_with_exactly_these(guarded: Guarded, rights: Rights, tmp_path: Path) -> None:
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
        told: set[str] = set()
        while told != {page.url for page in PAGES}:
            # Some are revised: one record at least, and then the next.
            told |= {read_verdict(record.value or b"").url for record in await read(consumer, recorder, 1, 60)}
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
def every_topic(guarded: Guarded, rights: Rights, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each has something that a service works on, and something that it must reject: it then needs every right."""

    async def fill() -> None:
        state = tmp_path_factory.mktemp("filling")
        deployer = settings_of(guarded, "deployer", state)
        await KafkaLog(deployer).create_topics(topic_specs(deployer))
        values = [NO_PAGE, *(write_page(page) for page in PAGES)]
        await send(guarded, state, values)
        async with KafkaLog(settings_of(guarded, "admin", state)) as log:
            for topic in (TOPICS.probes, TOPICS.inbox):
                await log.send([Output(topic, 0, None, b"no message")])
            # The header makes it a canary, whose verdict goes to another topic than those of pages.
            await log.send([Output(TOPICS.pages, 0, b"0", values[1], ((CANARY_HEADER, b"canary: a copy"),))])
        async with (
            running("featurizer", settings_of(guarded, "featurizer", state)),
            running("shard", settings_of(guarded, "shard", state)),
            running("aggregator", settings_of(guarded, "aggregator", state)),
            asyncio.timeout(60),
        ):
            viewer = settings_of(guarded, "viewer", state)
            while not (await look(viewer, [TOPICS.documents], [])).topics[TOPICS.documents].records:
                await asyncio.sleep(0.2)

    asyncio.run(fill())


def needed_by(*services: str) -> list[Any]:
    return [
        pytest.param(name, grant, id=" ".join([name, *grant.split()[5:]]))
        for name in services
        for grant in GRANTS
        if f"User:{name} " in grant
    ]


def only_writes() -> list[str]:
    """Rights to write of users that may write nowhere else: the broker then names no topic."""
    writes = [grant for grant in GRANTS if "--operation Write" in grant]
    users = Counter(acl_of(grant).principal for grant in writes)
    return [grant for grant in writes if users[acl_of(grant).principal] == 1]


@pytest.mark.usefixtures("every_topic")
@pytest.mark.parametrize(("service", "grant"), needed_by("featurizer", "shard", "aggregator", "canary"))
async def test_without_one_of_them_the_error_says_what_is_missing(
    guarded: Guarded, rights: Rights, tmp_path: Path, service: str, grant: str
) -> None:
    settings = settings_of(guarded, service, tmp_path)
    with rights.without(grant):
        if service == "featurizer":  # it has no state and goes on after what it has committed
            await send(guarded, tmp_path, [NO_PAGE, write_page(PAGES[0])])
        missing = "write to any topic" if grant in only_writes() else acl_of(grant).name
        with pytest.raises(NotAuthorized, match=rf"the user '{service}' .*{missing}.*deploy/SECURITY.md") as raised:
            async with asyncio.timeout(30), KafkaLog(settings) as log:
                await make_runner(service, settings, log).run()
    assert "password" not in str(raised.value)

"""Tests of every panel and every rule on a real Prometheus that monitors real services on a real broker."""

import asyncio
import contextlib
import json
import math
import re
import subprocess
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.kafka import broker as kafka
from deploy.prometheus import fetch
from neardup.deployment.deployment import SERVICES
from neardup.log import Output
from neardup.log.kafka import KafkaLog
from neardup.messages.pages import write_page
from neardup.messages.topics import Topics
from neardup.sample import sample_crawl
from neardup.settings import Settings
from tests.services.workers import Deployment
from tests.support.brokers import FoundBroker

pytestmark = [pytest.mark.kafka, pytest.mark.real_broker]

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "deploy/prometheus/prometheus.yml"
RULES = ROOT / "deploy/prometheus/rules.yml"
PAGES = 300
SECONDS = 480.0  # a fresh machine compiles its kernels first
PATIENCE_SECONDS = 20.0


def panel_expressions(dashboard: str) -> list[tuple[str, str]]:
    return [
        (f"{panel['title']}: {target['legendFormat'] or 'value'}", target["expr"].replace("$__rate_interval", "5m"))
        for panel in json.loads(dashboard)["panels"]
        for target in panel["targets"]
    ]


DASHBOARDS = {path.stem: path.read_text() for path in sorted((ROOT / "deploy/grafana/dashboards").glob("*.json"))}
IN_PANELS = [
    pytest.param(expression, id=f"{name}: {title}")
    for name, dashboard in DASHBOARDS.items()
    for title, expression in panel_expressions(dashboard)
]
IN_RULES = [
    pytest.param(rule["expr"], id=rule.get("record") or rule["alert"])
    for group in yaml.safe_load(RULES.read_text())["groups"]
    for rule in group["rules"]
]
ALERTS = {rule.values[0] for rule in IN_RULES if str(rule.id).startswith("Neardup")}

# Expressions that may be empty must still refer only to series that exist.
MAY_BE_EMPTY: list[tuple[Callable[[str], bool], str]] = [
    (lambda expression: expression in ALERTS, "an alert that does not fire"),
    (lambda expression: "neardup_dead_letters_total" in expression, "a stage that refused nothing"),
]


class Prometheus:
    """A running server, queried over HTTP."""

    def __init__(self, port: int) -> None:
        self._port = port

    def query(self, expression: str) -> list[float]:
        """Return the values of an instant query without NaN."""
        url = f"http://127.0.0.1:{self._port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            body: dict[str, Any] = json.load(answer)
        assert body["status"] == "success", body
        values = [float(each["value"][1]) for each in body["data"]["result"]]
        return [value for value in values if not math.isnan(value)]

    def empty(self, expression: str) -> list[str]:
        """Return the parts of an expression without data: the expression, unless it may be empty, and its series."""
        found = [] if any(holds(expression) for holds, _ in MAY_BE_EMPTY) or self.query(expression) else [expression]
        return found + [series for series in series_of(expression) if not self.query(series)]

    def still_empty(self, expression: str) -> list[str]:
        """Return `empty` after a while: if a busy machine misses a scrape, all series of a worker are interrupted."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := self.empty(expression)) and time.monotonic() < deadline:
            time.sleep(1)
        return found

    def wait(self, expression: str, least: float) -> None:
        """Wait until the value is at least `least`."""
        deadline = time.monotonic() + SECONDS
        value = -math.inf
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # the server is still starting
                value = max(self.query(expression), default=-math.inf)
            if value >= least:
                return
            time.sleep(0.5)
        raise AssertionError(f"expected {expression} to be at least {least} within {SECONDS:g} s, got {value}")


def series_of(expression: str) -> list[str]:
    """Return the selectors of an expression except for ALERTS, which has no series when no alert fires."""
    return re.findall(r"(?<![\w:])(?:(?:\w+:)?(?:neardup|process)_[\w:]+|up)(?:\{[^}]*\})?", expression)


@pytest.fixture(scope="module")
def programs() -> Path:
    """Return the folder of prometheus and promtool."""
    try:
        return fetch.programs()
    except fetch.FetchError as error:
        pytest.skip(f"needs Prometheus: {error}")


def promtool(programs: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [programs / "promtool", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_promtool_accepts_configuration_and_rules(programs: Path) -> None:
    for what, path in (("config", CONFIGURATION), ("rules", RULES)):
        done = promtool(programs, "check", what, path)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_fires_exactly_when_it_should(programs: Path) -> None:
    done = promtool(programs, "test", "rules", RULES.with_name("rules_test.yml"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {rule.id for rule in IN_RULES if rule.values[0] in ALERTS} == set(
        re.findall(r"\bNeardup\w+", RULES.with_name("rules_test.yml").read_text())
    )


def rewritten(ports: Sequence[int], own_port: int) -> dict[str, Any]:
    """Return the configuration of the repository with local addresses and shorter intervals."""
    configuration: dict[str, Any] = yaml.safe_load(CONFIGURATION.read_text())
    configuration["global"] = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"}
    configuration["rule_files"] = [str(CONFIGURATION.parent / name) for name in configuration["rule_files"]]
    targets = {"prometheus": [own_port], "neardup": ports}
    for job in configuration["scrape_configs"]:
        job["static_configs"] = [{"targets": [f"127.0.0.1:{port}" for port in targets.pop(job["job_name"])]}]
    assert not targets
    return configuration


async def send(settings: Settings, first: int, count: int) -> None:
    pages = [made.page for made in sample_crawl(PAGES, seed=3, mean_bytes=8000)][first : first + count]
    topic = Topics.under(settings.prefix).pages
    async with KafkaLog(settings) as log:
        await log.send([Output(topic, None, page.url.encode(), write_page(page)) for page in pages])
        await log.send([Output(topic, 0, None, b"{not a page")])


@pytest.fixture(scope="module")
def prometheus(broker: FoundBroker, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run one worker of each service, send a sample crawl in two parts, and monitor it with Prometheus."""
    if not broker.real:
        pytest.skip(f"needs Apache Kafka for topics and groups; have {broker.about}")
    directory = tmp_path_factory.mktemp("panels")
    settings = Settings(
        broker=broker.bootstrap, prefix=f"t{uuid.uuid4().hex[:8]}", checkpoint_seconds=0.5, corpus_seconds=0.5,
        page_partitions=1, owners=1, verdict_partitions=1, tables=4, bands="4x8", threads=1,
        recluster_seconds=5, canary_share=0.5, shadow_share=1.0,
    )  # fmt: skip
    deployment = Deployment(settings, directory)
    created = deployment.neardup("topics", "create")
    assert created.returncode == 0, created
    port = kafka.free_port()
    processes = []
    try:
        workers = [deployment.start("neardup", "worker", name) for name in SERVICES]
        processes += [worker.process for worker in workers]
        configuration = directory / "prometheus.yml"
        configuration.write_text(yaml.safe_dump(rewritten([worker.port for worker in workers], port)))
        command = [
            str(programs / "prometheus"), f"--config.file={configuration}", f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip
        with (directory / "prometheus.log").open("wb") as log:
            processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        for worker in workers:
            worker.await_ready(SECONDS)
        server = Prometheus(port)
        # Send the second half after the first was scraped, because a rate needs two samples with work between them.
        for first in (0, PAGES // 2):
            asyncio.run(send(settings, first, PAGES // 2))
            server.wait("sum(neardup_verdicts_total)", first + PAGES // 2)
            server.wait("sum(neardup_archived_documents_total)", 1)
            server.wait('count(neardup_checkpoint_timestamp_seconds{stage="recluster"})', 1)
            time.sleep(5)
        server.wait("max(neardup_pass_timestamp_seconds)", 1)
        for source in ("canary", "shadow"):
            server.wait(f'source:neardup_recall:ratio1h{{source="{source}"}}', 0)
        yield server
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize("expression", IN_PANELS)
def test_every_panel_has_data(prometheus: Prometheus, expression: str) -> None:
    assert prometheus.still_empty(expression) == []


@pytest.mark.parametrize("expression", IN_RULES)
def test_every_rule_has_data(prometheus: Prometheus, expression: str) -> None:
    assert prometheus.still_empty(expression) == []


def test_no_alert_fires_in_a_healthy_deployment(prometheus: Prometheus) -> None:
    # One page in 150 cannot be read, which is below the threshold of the alert on dead letters.
    assert prometheus.query('ALERTS{alertstate="firing"}') == []


@pytest.mark.parametrize("metric", ["neardup_lag_records", "neardup_dead_letters_total", "up"])
def test_a_metric_with_a_wrong_name_is_detected(prometheus: Prometheus, metric: str) -> None:
    """This includes expressions that may be empty."""
    broken = [
        re.sub(rf"\b{metric}\b", f"{metric}s" if metric != "up" else "neardup_up", expression)
        for dashboard in DASHBOARDS.values()
        for _, expression in panel_expressions(dashboard)
        if re.search(rf"\b{metric}\b", expression)
    ]
    assert broken
    assert all(prometheus.empty(expression) for expression in broken)

"""docker-compose.yml and what it mounts agree with the code, the Makefile and each other."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

import broker
import generate
import panels
from neardup import metrics
from neardup.settings import Settings, variable_of
from neardup_services.cli import main

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
RULES = ROOT / "deploy/prometheus/rules.yml"
OURS = {name: each for name, each in SERVICES.items() if each["image"] == "neardup"}
WORKERS = {name: each for name, each in OURS.items() if each["command"][0] == "worker"}
DOCKERFILE = (ROOT / "deploy/docker/Dockerfile").read_text()
DASHBOARDS = sorted((ROOT / "deploy/grafana/dashboards").glob("*.json"))

every_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
our_services = pytest.mark.parametrize("service", OURS.values(), ids=OURS)
workers = pytest.mark.parametrize("service", WORKERS.values(), ids=WORKERS)


def _compose_command() -> list[str] | None:
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            done = subprocess.run([*command, "version"], capture_output=True, check=False)
            if done.returncode == 0:
                return command
    return None


def test_compose_accepts_the_file() -> None:
    command = _compose_command()
    if command is None:
        pytest.skip("neither `docker compose` nor docker-compose is installed")
    environment = {**os.environ, "GRAFANA_PASSWORD": "any"}
    done = subprocess.run([*command, "config", "-q"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@our_services
def test_every_command_exists(service: dict[str, Any]) -> None:
    command: click.Command = main
    words = list(service["command"])
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context("neardup", words)  # raises if the arguments are wrong; runs nothing


@our_services
def test_every_variable_is_a_setting(service: dict[str, Any]) -> None:
    known = {variable_of(each.name) for each in fields(Settings)}
    assert {name for name in service["environment"] if name.startswith("NEARDUP_")} <= known
    assert set(re.findall(r"NEARDUP_\w+", DOCKERFILE)) <= known
    Settings.load(service["environment"])


@every_service
def test_no_service_has_more_rights_than_it_needs(service: dict[str, Any]) -> None:
    user = service.get("user") or re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)[-1]
    assert user.split(":")[0] not in ("", "0", "root")
    assert "user" in service or service["image"] == "neardup"
    assert not service.get("privileged")
    assert not service.get("cap_add")
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert "mem_limit" in service
    assert "pids_limit" in service


@our_services
def test_our_containers_cannot_change_their_image(service: dict[str, Any]) -> None:
    assert service["read_only"]
    assert service["tmpfs"] == ["/tmp"]


@every_service
def test_ports_are_published_on_the_loopback_only(service: dict[str, Any]) -> None:
    for port in service.get("ports", ()):
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)


def test_no_two_services_share_a_published_port() -> None:
    published = [port.split(":")[1] for each in SERVICES.values() for port in each.get("ports", ())]
    assert len(set(published)) == len(published)


@every_service
def test_every_image_is_pinned(service: dict[str, Any]) -> None:
    assert service["image"] == "neardup" or re.search(r":v?\d+\.\d+\.\d+$", service["image"])


def test_one_service_alone_builds_the_image() -> None:
    # Services that build one tag at the same time collide.
    (builder,) = [each for each in SERVICES.values() if "build" in each]
    assert builder["image"] == "neardup"
    assert (ROOT / builder["build"]["dockerfile"]).exists()


@workers
def test_a_worker_waits_for_topics_and_says_when_it_is_ready(service: dict[str, Any]) -> None:
    assert service["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}
    assert SERVICES["topics"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}
    assert f":{service['environment']['NEARDUP_WEB_PORT']}/readyz" in service["healthcheck"]["test"][-1]
    assert service["restart"] == "unless-stopped"


def test_every_worker_has_a_state_volume_of_its_own() -> None:
    volumes = []
    for each in WORKERS.values():
        mounts = dict(volume.split(":") for volume in each["volumes"])
        state = Path(each["environment"]["NEARDUP_STATE"])
        volumes += [volume for volume, path in mounts.items() if state.is_relative_to(path)]
    assert len(set(volumes)) == len(WORKERS)


def test_kafka_is_configured_as_the_broker_without_docker(tmp_path: Path) -> None:
    cluster = broker.Cluster(tmp_path)
    alone = cluster._configuration(cluster.nodes[0])
    environment = SERVICES["kafka"]["environment"]
    same = ["auto.create.topics.enable", "message.max.bytes", "replica.fetch.max.bytes", "offsets.topic.num.partitions"]
    for name in same:
        assert environment["KAFKA_" + name.replace(".", "_").upper()] == alone[name]
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{broker.NEWEST}"


def test_no_secret_is_committed() -> None:
    for each in SERVICES.values():
        for name, value in each.get("environment", {}).items():
            assert "PASSWORD" not in name or re.match(r"\$\{\w+:\?", value), f"{name} has a value"


def test_prometheus_scrapes_every_worker_and_itself() -> None:
    scraped = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())["scrape_configs"]
    targets = [target for job in scraped for group in job["static_configs"] for target in group["targets"]]
    ours = [f"{name}:{each['environment']['NEARDUP_WEB_PORT']}" for name, each in WORKERS.items()]
    assert sorted(targets) == sorted([*ours, "127.0.0.1:9090"])


def test_grafana_finds_what_is_mounted() -> None:
    mounts = {path: ROOT / source for source, path, _ in (each.split(":") for each in SERVICES["grafana"]["volumes"])}
    assert all(source.is_dir() for source in mounts.values())
    provisioning = mounts["/etc/grafana/provisioning"]
    (provider,) = yaml.safe_load((provisioning / "dashboards/neardup.yml").read_text())["providers"]
    assert provider["options"]["path"] in mounts
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    uids = re.findall(r'"type": "prometheus",\s+"uid": "(\w+)"', "".join(each.read_text() for each in DASHBOARDS))
    assert set(uids) == {source["uid"]}


def _labels_by_series() -> dict[str, set[str]]:
    """Every series with its labels: ours, recorded ones, and those that Prometheus and its client make."""
    names = ("up", "ALERTS", "process_cpu_seconds_total", "process_resident_memory_bytes")
    of_others = {name: {"instance"} for name in names}
    # What a recorded series is grouped by comes first in its name.
    of_others |= {name: {name.partition(":")[0]} for name in re.findall(r"record: (\w+:neardup\S+)", RULES.read_text())}
    suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
    return of_others | {
        described.name + suffix: {"instance", *metric._labelnames, *(["le"] if suffix == "_bucket" else [])}
        for metric in vars(metrics).values()
        if isinstance(metric, MetricWrapperBase)
        for described in metric.describe()
        for suffix in suffixes[described.type]
    }


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_asks_for_metrics_and_labels_that_exist(dashboard: Path) -> None:
    series = _labels_by_series()
    targets = [target for panel in json.loads(dashboard.read_text())["panels"] for target in panel["targets"]]
    assert targets
    for target in targets:
        used = re.findall(r"\b(?:\w+:)?(?:neardup_|process_)[\w:]+|\bup\b|\bALERTS\b", target["expr"])
        assert used
        assert set(used) <= series.keys()
        grouped = {label for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in group.split(", ")}
        assert grouped <= set.union(*(series[name] for name in used))
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= grouped


def test_the_dashboards_are_those_that_their_source_makes() -> None:
    assert {path.stem for path in DASHBOARDS} == set(panels.ALL)
    for path in DASHBOARDS:
        assert path.read_text() == generate.written(path.stem), "run: python deploy/grafana/generate.py"


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_has_a_title_a_unit_and_a_description_and_overlaps_no_other(dashboard: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(dashboard.read_text())["panels"]:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not own & taken
        taken |= own


def test_prometheus_has_the_rules_that_its_configuration_names() -> None:
    (named,) = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())["rule_files"]
    mounts = {
        target: ROOT / source for source, target, *_ in (each.split(":") for each in SERVICES["prometheus"]["volumes"])
    }
    assert mounts[f"/etc/prometheus/{named}"].exists()


def _pip_installs(text: str) -> list[list[str]]:
    return [line.split() for line in re.findall(r"/pip install (.*)$", text, re.MULTILINE)]


def test_the_image_is_installed_as_make_installs() -> None:
    image = _pip_installs(DOCKERFILE)
    make = _pip_installs((ROOT / "Makefile").read_text())
    # The image has no development tools, no peers of benchmarks, and no source to be edited.
    make = [
        [word.replace("lock/dev.txt", "lock/runtime.txt") for word in line if word != "--editable"]
        for line in make
        if "deploy/lock/bench.txt" not in line
    ]
    assert image == make
    assert "deploy/lock/runtime.txt" in image[0]


def test_the_build_context_holds_what_the_image_copies_and_nothing_else() -> None:
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    }  # fmt: skip
    assert all((ROOT / source).exists() for source in copied)
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore
    assert {line[1:] for line in ignore if line.startswith("!")} == copied

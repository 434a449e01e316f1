"""Tests that docker-compose.yml and the files that it mounts agree with the code, the Makefile and each other."""

import json
import os
import re
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

import neardup
from deploy import stack
from deploy.grafana import generate, panels
from deploy.kafka import broker
from neardup import metrics
from neardup.deployment.deployment import SERVICES as SERVICES_OF_NEARDUP
from neardup.settings import Settings, variable_of
from neardup_services.cli import main
from tests.support.commands import subcommand

ROOT = Path(__file__).parents[2]
IMAGE = f"neardup:{neardup.__version__}"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
RULES = ROOT / "deploy/prometheus/rules.yml"
OURS = {name: each for name, each in SERVICES.items() if each["image"] == IMAGE}
WORKERS = {name: each for name, each in OURS.items() if each["command"][0] == "worker"}
DOCKERFILE = (ROOT / "deploy/docker/Dockerfile").read_text()
DASHBOARDS = sorted((ROOT / "deploy/grafana/dashboards").glob("*.json"))

every_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
our_services = pytest.mark.parametrize("service", OURS.values(), ids=OURS)
workers = pytest.mark.parametrize("service", WORKERS.values(), ids=WORKERS)


def test_compose_accepts_the_file_without_any_variable() -> None:
    if not stack.docker_runs():
        pytest.skip("Docker with Compose does not run")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAFANA")}
    command = ["docker", "compose", "config", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@our_services
def test_every_command_exists(service: dict[str, Any]) -> None:
    command: click.Command = main
    words = list(service["command"])
    while isinstance(command, click.Group):
        command = subcommand(command, words.pop(0))
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
    assert "user" in service or service["image"] == IMAGE
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
    assert re.search(r":v?\d+\.\d+\.\d+$", service["image"])


def test_the_image_has_the_version_of_the_package() -> None:
    assert set(OURS) == {"topics", *SERVICES_OF_NEARDUP}
    assert f'org.opencontainers.image.version="{neardup.__version__}"' in DOCKERFILE
    assert f"--tag {IMAGE}" in DOCKERFILE


def test_only_one_service_builds_the_image() -> None:
    # Services that build one tag at the same time collide.
    (builder,) = [each for each in SERVICES.values() if "build" in each]
    assert builder["image"] == IMAGE
    assert (ROOT / builder["build"]["dockerfile"]).exists()


@workers
def test_a_worker_waits_for_topics_and_has_a_readiness_check(service: dict[str, Any]) -> None:
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


@workers
def test_no_volume_hides_the_compiled_kernels_of_the_image(service: dict[str, Any]) -> None:
    [folder] = re.findall(r"NUMBA_CACHE_DIR=(\S+)", DOCKERFILE)
    assert not any(Path(folder).is_relative_to(volume.split(":")[1]) for volume in service["volumes"])
    assert not any(Path(folder).is_relative_to(path) for path in re.findall(r'^VOLUME \["(.*)"\]', DOCKERFILE, re.M))


def test_kafka_is_configured_like_the_broker_without_docker(tmp_path: Path) -> None:
    cluster = broker.Cluster(tmp_path)
    alone = cluster._configuration(cluster.nodes[0])
    environment = SERVICES["kafka"]["environment"]
    same = ["auto.create.topics.enable", "message.max.bytes", "replica.fetch.max.bytes", "offsets.topic.num.partitions"]
    for name in same:
        assert environment["KAFKA_" + name.replace(".", "_").upper()] == alone[name]
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{broker.NEWEST}"


def test_no_secret_is_committed() -> None:
    for each in SERVICES.values():
        assert not any("PASSWORD" in name for name in each.get("environment", {}))
    used = {each["path"]: each.get("required", True) for each in SERVICES["grafana"]["env_file"]}
    assert used.pop(str(stack.PASSWORD_FILE.relative_to(ROOT))) is False
    for path in used:
        assert "PASSWORD" not in (ROOT / path).read_text()
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert f"/{stack.PASSWORD_FILE.relative_to(ROOT).parts[0]}/" in ignored


def test_grafana_has_no_default_password_without_a_password_file(tmp_path: Path) -> None:
    """A variable in `environment` would override both files."""
    name = "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"
    files = [each["path"] for each in SERVICES["grafana"]["env_file"]]
    assert files[-1] == str(stack.PASSWORD_FILE.relative_to(ROOT))
    assert f"{name}=true" in (ROOT / files[0]).read_text()
    stack.keep_password(tmp_path / "grafana.env")
    assert f"{name}=false" in (tmp_path / "grafana.env").read_text()
    assert name not in SERVICES["grafana"]["environment"]


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
    """Return every series with its labels: those of neardup, recorded ones, and those of Prometheus and its client."""
    names = ("up", "ALERTS", "process_cpu_seconds_total", "process_resident_memory_bytes")
    of_others = {name: {"instance"} for name in names}
    # The name of a recorded series starts with the labels by which it is grouped.
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
def test_every_panel_uses_metrics_and_labels_that_exist(dashboard: Path) -> None:
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


def test_the_dashboards_equal_those_of_their_generator() -> None:
    assert {path.stem for path in DASHBOARDS} == set(panels.ALL)
    for path in DASHBOARDS:
        assert path.read_text() == generate.written(path.stem), "run: python -m deploy.grafana.generate"


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


def _pip_options(text: str) -> set[str]:
    """Return every option and argument of `pip install` except for the environment and the lock file."""
    lines = re.findall(r"/pip (?:--python \S+ )?install (.*)$", text, re.MULTILINE)
    return {word for line in lines for word in line.split() if word.startswith("--")}


def test_the_image_is_installed_like_a_checkout() -> None:
    # A checkout is installed as editable from the locked backend, the image from a wheel that this backend built.
    make = _pip_options((ROOT / "Makefile").read_text()) - {"--editable", "--no-build-isolation"}
    assert _pip_options(DOCKERFILE) == make
    assert re.search(r"/pip wheel .*--no-build-isolation", DOCKERFILE)
    assert set(re.findall(r"--requirement (\S+)", DOCKERFILE)) == {"deploy/lock/build.txt", "deploy/lock/runtime.txt"}


def test_the_build_context_contains_exactly_what_the_image_copies() -> None:
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    }  # fmt: skip
    assert all((ROOT / source).exists() for source in copied)
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore
    assert {line[1:] for line in ignore if line.startswith("!")} == copied

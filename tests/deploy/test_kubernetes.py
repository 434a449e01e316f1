"""Tests that the Kubernetes manifests agree with the code, the image and each other.

They use the schemas of Kubernetes, checks of their own and, if kubectl is installed, its kustomize.
"""

import re
import shutil
import subprocess
import sys
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

import neardup
from neardup.deployment.deployment import SERVICES
from neardup.settings import Settings, variable_of
from neardup_services.cli import main
from tests.support.commands import subcommand

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
Object = dict[str, Any]
OBJECTS: list[Object] = [
    each for name in KUSTOMIZATION["resources"] for each in yaml.safe_load_all((FOLDER / name).read_text())
]
DOCKERFILE = (ROOT / "deploy/docker/Dockerfile").read_text()
KNOWN = {variable_of(each.name) for each in fields(Settings)}


def of_kind(*kinds: str) -> list[Object]:
    return [each for each in OBJECTS if each["kind"] in kinds]


def named(each: Object) -> str:
    return str(each["metadata"]["name"])


CUSTOM = of_kind("PodMonitor")
SCHEMAS = ("1.30", "1.37")
"""The oldest and the newest release of Kubernetes that is checked."""
WORKERS = of_kind("Deployment", "StatefulSet")
WITH_PODS = [*WORKERS, *of_kind("Job")]
SETTINGS: dict[str, str] = of_kind("ConfigMap")[0]["data"]
every_worker = pytest.mark.parametrize("worker", WORKERS, ids=named)
every_pod = pytest.mark.parametrize("owner", WITH_PODS, ids=named)


def pod_of(owner: Object) -> Object:
    spec: Object = owner["spec"]["template"]["spec"]
    return spec


def containers(owner: Object) -> list[Object]:
    pod = pod_of(owner)
    return [*pod.get("initContainers", ()), *pod["containers"]]


def environment(worker: Object) -> dict[str, str]:
    (container,) = pod_of(worker)["containers"]
    own = {each["name"]: each.get("value", named(worker) + "-0") for each in container.get("env", ())}
    return SETTINGS | own


def test_every_file_is_a_resource_and_every_service_has_its_workers() -> None:
    assert sorted(KUSTOMIZATION["resources"]) == sorted(
        path.name for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml"
    )
    assert {named(each) for each in WORKERS} == set(SERVICES)
    names = [(each["kind"], named(each)) for each in OBJECTS]
    assert len(set(names)) == len(names)


def test_the_image_has_the_version_of_the_package() -> None:
    assert [(each["name"], each["newTag"]) for each in KUSTOMIZATION["images"]] == [("neardup", neardup.__version__)]


def test_kustomize_accepts_them() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, timeout=60, check=False)
    if "unknown command" in done.stderr:
        pytest.skip("this kubectl has no kustomize")
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    assert len(built) == len(OBJECTS)
    assert f"image: neardup:{neardup.__version__}" in done.stdout


@pytest.mark.parametrize("version", SCHEMAS)
@pytest.mark.parametrize(
    "each", [each for each in OBJECTS if each not in CUSTOM], ids=lambda each: f"{each['kind']}-{named(each)}"
)
def test_every_object_follows_the_schema(each: Object, version: str) -> None:
    """The check is strict: fields that are not in the schema are errors."""
    kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "replicas"), "two"),
        (("spec", "replica"), 2),
        (("spec", "template", "spec", "containers", 0, "ports", 0, "containerPort"), "6066"),
        (("spec", "template", "spec", "containers", 0, "readinessProbe", "httpGet", "url"), "/readyz"),
        (("spec", "selector"), "shard"),
    ],
)
def test_a_broken_manifest_is_detected(path: tuple[str | int, ...], value: object) -> None:
    (broken,) = [deepcopy(each) for each in of_kind("StatefulSet") if named(each) == "shard"]
    place: Any = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, SCHEMAS[-1], strict=True)


def test_only_custom_resources_have_no_schema() -> None:
    assert [each["apiVersion"] for each in CUSTOM] == ["monitoring.coreos.com/v1"]


@every_pod
def test_every_command_exists(owner: Object) -> None:
    for container in pod_of(owner)["containers"]:
        command: click.Command = main
        words = list(container["args"])
        while isinstance(command, click.Group):
            command = subcommand(command, words.pop(0))
        command.make_context("neardup", words)


@every_pod
def test_every_variable_is_a_setting_with_a_valid_value(owner: Object) -> None:
    (container,) = pod_of(owner)["containers"]
    assert {"configMapRef": {"name": "neardup-settings"}} in container["envFrom"]
    assert set(environment(owner)) <= KNOWN
    Settings.load(environment(owner))


@every_pod
def test_no_pod_has_more_rights_than_it_needs(owner: Object) -> None:
    pod = pod_of(owner)
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False, "a Service called neardup-web would set NEARDUP_WEB_PORT"
    assert pod["securityContext"]["runAsNonRoot"] is True
    [user] = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" == user
    assert pod["securityContext"].get("fsGroup", pod["securityContext"]["runAsGroup"]) == int(user.split(":")[1])
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    for container in containers(owner):
        assert container["image"] == "neardup"
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"]["memory"]


@every_pod
def test_every_mount_has_a_volume_and_writable_directories_are_mounted(owner: Object) -> None:
    claimed = [each["metadata"]["name"] for each in owner["spec"].get("volumeClaimTemplates", ())]
    volumes = {*claimed, *(each["name"] for each in pod_of(owner)["volumes"])}
    for container in containers(owner):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    (container,) = pod_of(owner)["containers"]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert "/tmp" in mounted
    # A volume at this path would hide the compiled kernels of the image.
    assert not any(path.startswith("/var/cache") for path in mounted)
    if owner in WORKERS:
        assert any(Path(environment(owner)["NEARDUP_STATE"]).is_relative_to(path) for path in mounted)


@every_worker
def test_selectors_match_their_pods(worker: Object) -> None:
    labels = worker["spec"]["template"]["metadata"]["labels"]
    assert worker["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (budget,) = [each for each in of_kind("PodDisruptionBudget") if named(each) == named(worker)]
    assert budget["spec"]["selector"]["matchLabels"] == worker["spec"]["selector"]["matchLabels"]
    (monitor,) = of_kind("PodMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert labels[monitor["spec"]["jobLabel"]] == "neardup"
    others = [each for each in WORKERS if each is not worker]
    assert all(each["spec"]["selector"]["matchLabels"] != worker["spec"]["selector"]["matchLabels"] for each in others)


@every_worker
def test_probes_use_routes_of_the_worker(worker: Object) -> None:
    (container,) = pod_of(worker)["containers"]
    asked = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {name: each["path"] for name, each in asked.items()} == {
        "startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz",
    }  # fmt: skip
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {ports[each["port"]] for each in asked.values()} == {int(environment(worker)["NEARDUP_WEB_PORT"])}
    (monitor,) = of_kind("PodMonitor")
    assert {each["port"] for each in monitor["spec"]["podMetricsEndpoints"]} <= ports.keys()
    assert environment(worker)["NEARDUP_WEB_HOST"] == "0.0.0.0"
    grace = pod_of(worker)["terminationGracePeriodSeconds"]
    assert grace > Settings.load(environment(worker)).stop_seconds


@pytest.mark.parametrize("worker", of_kind("StatefulSet"), ids=named)
def test_a_worker_with_state_keeps_its_volume_and_its_name(worker: Object) -> None:
    assert [claim["metadata"]["name"] for claim in worker["spec"]["volumeClaimTemplates"]] == ["state"]
    (container,) = pod_of(worker)["containers"]
    assert {"name": "NEARDUP_INSTANCE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} in container["env"]
    (service,) = [each for each in of_kind("Service") if named(each) == worker["spec"]["serviceName"]]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == worker["spec"]["selector"]["matchLabels"]


def test_only_services_that_read_pages_are_stateless() -> None:
    assert [named(each) for each in of_kind("Deployment")] == ["featurizer", "canary"]


def test_more_than_one_recluster_needs_a_shared_corpus() -> None:
    (recluster,) = [each for each in WORKERS if named(each) == "recluster"]
    assert recluster["spec"]["replicas"] == 1 or "NEARDUP_CORPUS" in environment(recluster)


def test_the_operator_gets_the_same_rules() -> None:
    command = [sys.executable, "-m", "deploy.kubernetes.alerts"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    rule = yaml.safe_load(done.stdout)
    assert rule["kind"] == "PrometheusRule"
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())

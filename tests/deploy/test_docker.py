"""Tests with the image and the stack in a real Docker engine: first page, crash, upgrade, users, Kubernetes pods.

The tests share one stack and run in this order. Without an engine, or if it cannot pull the base images, all of them
are skipped with one reason.
"""

import asyncio
import json
import os
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

import neardup
from deploy import stack
from deploy.docker import sizes
from neardup.log import Output
from neardup.log.kafka import KafkaLog
from neardup.messages.pages import write_page
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.settings import Settings
from neardup.types import Page
from neardup_services.topic_reader import read_records
from tests.deploy.docker_stack import ROOT, WORKERS, Stack, docker, missing
from tests.deploy.test_kubernetes import WITH_PODS, Object, environment, named, pod_of
from tests.support.documents import text_of

pytestmark = pytest.mark.docker

HASHING = "neardup/kernels/common/hashing.py"
PAGES = 300
GOAL_SECONDS = 0.6
"""Goal for the first page of a new stack. It is reported but not asserted, because the machine may be busy."""
ANY_SECONDS = 30.0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Provide a stack whose image is built and which is not started."""
    if reason := missing():
        pytest.skip(reason)
    made = Stack(tmp_path_factory.mktemp("docker"))
    try:
        made.build()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def running(built: Stack) -> Stack:
    """Provide the stack, healthy and without pages."""
    built.up()
    return built


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file of distinct pages."""
    path = tmp_path_factory.mktemp("crawl") / "pages.jsonl"
    lines = [json.dumps({"url": f"http://a.example/{n}", "text": " ".join(text_of(n))}) for n in range(PAGES)]
    path.write_text("\n".join(lines))
    return path


def produced(stack: Stack, path: Path, **environment: str) -> str:
    """Send the pages of a file and return the counts of their verdicts."""
    done = stack.neardup("produce", str(path), "--wait", "--timeout", "60", **environment)
    assert done.returncode == 0, done.stderr + stack.compose("logs", "--tail", "20")
    return done.stdout


def wait_for(holds: Callable[[], bool], seconds: float = ANY_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"expected this within {seconds:g} s"
        time.sleep(0.5)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--user", "12345"),
        ("--user", "12345:0"),
        ("--user", "12345:10001"),
        ("--user", "12345:12345"),
        ("--user", "12345:12345", "--read-only", "--tmpfs", "/tmp"),
    ],
    ids=" ".join,
)
def test_the_image_runs_as_any_user(built: Stack, options: tuple[str, ...]) -> None:
    """State is on the volume, and the compiled kernels are those of the image."""
    pages = "\n".join(json.dumps({"url": f"http://a.example/{n}", "text": " ".join(text_of(0))}) for n in range(2))
    program = 'set -e; neardup warm-up; neardup dedup - --state "$NEARDUP_STATE" --out -; id'
    options = (*options, "--cap-drop", "ALL", "--entrypoint", "sh")
    output = built.run("-c", program, options=options, text=pages)
    assert "already compiled" in output
    verdicts = [json.loads(line)["verdict"] for line in output.splitlines() if line[:1] == "{"]
    assert sorted(verdicts) == ["duplicate", "unique"]
    assert f"uid={'12345' if '--user' in options else '10001(neardup) gid=10001(neardup)'}" in output


def test_the_image_has_no_tools_and_a_version(built: Stack) -> None:
    tools = ("pip", "setuptools", "hatchling")
    program = f"from importlib.util import find_spec; print([name for name in {tools} if find_spec(name)])"
    assert built.run("-c", program, options=("--entrypoint", "python")) == "[]\n"
    labels = json.loads(docker("image", "inspect", "--format", "{{json .Config.Labels}}", built.image).stdout)
    assert labels["org.opencontainers.image.version"] == neardup.__version__
    assert built.run("--version").strip().endswith(neardup.__version__)


def test_every_package_of_the_image_is_imported_or_required(built: Stack) -> None:
    """All modules can be imported, so the build removes no file that is used."""
    found = sizes.measure(built.image)
    assert {"neardup", "numba", "uvloop"} <= {each["name"] for each in found["packages"] if each["imported"]}
    assert [each["name"] for each in found["packages"] if not each["imported"] and not each["by"]] == []
    assert found["kernels"] > 1e6
    assert "| numba |" in sizes.table(found)


def test_a_changed_kernel_takes_effect_over_a_kept_volume(built: Stack) -> None:
    """`ngrams` calls `rotate`, which is in another file. The volume gets kernels that the old image compiled."""
    source = (ROOT / "shared" / HASHING).read_text()
    before = "return (x << np.uint64(by)) | (x >> np.uint64(64 - by))"
    assert before in source
    changed = built.derive("rotate", {HASHING: source.replace(before, before.replace("64 - by", "63 - by"))})
    volume = f"{built.project}-kept"
    program = (
        "import numpy, neardup.kernels.signatures.shingling as shingling; "
        "print(shingling.ngrams(numpy.arange(9, dtype=numpy.uint64), 4))"
    )

    def ngrams(image: str, *options: str) -> str:
        return built.run("-c", program, image=image, options=("--entrypoint", "python", *options))

    try:
        kept = ("--volume", f"{volume}:/var/lib/neardup")
        old = ngrams(built.image, *kept)
        new = ngrams(changed, *kept)
    finally:
        docker("volume", "rm", volume, check=False)
    assert new == ngrams(changed)
    assert new != old == ngrams(built.image)


def test_compose_needs_no_variable(tmp_path: Path) -> None:
    """The checkout is fresh, without a password file."""
    if reason := missing():
        pytest.skip(reason)
    (tmp_path / "deploy/grafana").mkdir(parents=True)
    for name in ("docker-compose.yml", "deploy/grafana/no-admin.env"):
        shutil.copy(ROOT / name, tmp_path / name)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GRAFANA", "GF_"))}

    def compose(*arguments: str) -> str:
        command = ("compose", "--project-name", "neardup-test-none", *arguments)
        done = docker(*command, cwd=tmp_path, env=clean)
        assert "variable" not in done.stderr
        return done.stdout

    def of_grafana() -> dict[str, str]:
        return dict(json.loads(compose("config", "--format", "json"))["services"]["grafana"]["environment"])

    for arguments in (("ps",), ("logs",), ("down",)):
        compose(*arguments)
    assert of_grafana()["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert "GF_SECURITY_ADMIN_PASSWORD" not in of_grafana()
    stack.keep_password(tmp_path / ".run" / "grafana.env")
    first = of_grafana()
    assert first["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "false"
    assert first["GF_SECURITY_ADMIN_PASSWORD"]
    stack.keep_password(tmp_path / ".run" / "grafana.env")
    assert of_grafana() == first


async def test_the_first_page_of_a_new_stack(running: Stack, record_property: Callable[[str, object], None]) -> None:
    in_stack, in_client = await _seconds_to_verdict(running.broker)
    measured = f"{in_stack:.2f} s from topic to verdict (goal {GOAL_SECONDS:g} s), {in_client:.2f} s in a new client"
    record_property("measured", f"first page after `up --wait`: {measured}")
    assert 0 < in_stack < in_client < ANY_SECONDS


async def _seconds_to_verdict(broker: str) -> tuple[float, float]:
    """Return the latency of one page according to its verdict, and as measured by a client with new connections."""
    settings = Settings(broker=broker)
    topics, stop, positioned = Topics.under(settings.prefix), asyncio.Event(), asyncio.Event()
    page = Page("http://first.example/", text=" ".join(text_of(PAGES + 1)))
    async with (
        KafkaLog(settings) as log,
        asyncio.timeout(2 * ANY_SECONDS),
        aclosing(
            read_records(log, topics.verdicts, "test", stop, new=True, follow=True, positioned=positioned)
        ) as found,
    ):
        first = asyncio.create_task(anext(found))
        await positioned.wait()
        await log.partitions(topics.pages)
        started = time.monotonic()
        await log.send([Output(topics.pages, None, page.url.encode(), write_page(page))])
        verdict = read_verdict((await first).value or b"")
        assert verdict.url == page.url
        return (verdict.latency_ms or 0) / 1000, time.monotonic() - started


def test_pages_get_verdicts_and_metrics_count_them(running: Stack, crawl: Path) -> None:
    assert produced(running, crawl).startswith(f"{PAGES} documents: {PAGES} unique, 0 duplicate")
    wait_for(lambda: running.metric("aggregator", "neardup_directory_documents") == PAGES + 1)
    assert running.metric("aggregator", "neardup_verdicts_total") >= PAGES + 1
    assert running.metric("featurizer", "neardup_records_total") >= PAGES + 1
    wait_for(lambda: _targets_up(running) == len(WORKERS) + 1)


def _targets_up(running: Stack) -> int:
    answer = json.loads(running.get("prometheus", "/api/v1/query?query=up"))
    return sum(each["value"][1] == "1" for each in answer["data"]["result"])


def test_a_killed_container_restarts_with_its_state(running: Stack, crawl: Path) -> None:
    killed = {name: running.container(name) for name in ("aggregator", "shard", "featurizer")}
    docker("kill", *killed.values())
    running.up()
    assert {name: running.container(name) for name in killed} == killed
    assert produced(running, crawl).startswith(f"{PAGES} documents: 0 unique, {PAGES} duplicate")


def test_an_upgraded_image_keeps_state_and_uses_its_own_kernels(running: Stack, crawl: Path) -> None:
    source = (ROOT / "shared" / HASHING).read_text()
    label = 'LABEL org.opencontainers.image.version="9.9.9"'
    upgraded = running.derive("upgraded", {HASHING: f"{source}\n# Changed.\n"}, "RUN neardup warm-up", label)
    before = {name: running.container(name) for name in WORKERS}
    kernels = running.compose("exec", "--no-TTY", "shard", "neardup", "warm-up")
    running.up(upgraded)
    after = {name: running.container(name) for name in WORKERS}
    assert not set(before.values()) & set(after.values())
    assert produced(running, crawl).startswith(f"{PAGES} documents: 0 unique, {PAGES} duplicate")
    assert running.metric("aggregator", "neardup_verdicts_total") >= PAGES
    upgraded_kernels = running.compose("exec", "--no-TTY", "shard", "neardup", "warm-up")
    assert kernels.startswith("already compiled")
    assert upgraded_kernels.startswith("already compiled")
    assert kernels != upgraded_kernels


def test_the_pods_of_the_manifests_run_as_containers(running: Stack, tmp_path: Path) -> None:
    """The containers have the commands, users, variables and mounts of the pods, a read-only root and no capability."""
    running.compose("stop", "--timeout", "30", *WORKERS)
    prefix = "pods"
    names = {named(owner): f"{running.project}-pod-{named(owner)}" for owner in WITH_PODS}
    [topics] = [owner for owner in WITH_PODS if owner["kind"] == "Job"]
    workers = [owner for owner in WITH_PODS if owner is not topics]
    try:
        docker("run", "--name", names["topics"], *_as_container(running, topics, prefix))
        for owner in workers:
            docker("run", "--detach", "--publish", "127.0.0.1::6066", "--name", names[named(owner)],
                   *_as_container(running, owner, prefix))  # fmt: skip
        for owner in workers:
            _await_ready(names[named(owner)])
        path = tmp_path / "pages.jsonl"
        path.write_text(
            "\n".join(json.dumps({"url": f"http://b/{n}", "text": " ".join(text_of(n // 2))}) for n in range(20))
        )
        assert produced(running, path, NEARDUP_PREFIX=prefix).startswith("20 documents: 10 unique, 10 duplicate")
    finally:
        docker("rm", "--force", "--volumes", *names.values(), check=False)


def _as_container(running: Stack, owner: Object, prefix: str) -> list[str]:
    """Return the options, image and arguments of `docker run` for the only container of a pod."""
    pod = pod_of(owner)
    [container] = pod["containers"]
    security = pod["securityContext"]
    # There is one broker instead of three. Its name on the network is the one in settings.yaml.
    variables = {**environment(owner), "NEARDUP_REPLICATION": "1", "NEARDUP_PREFIX": prefix}
    options = ["--network", f"{running.project}_default", "--user", f"{security['runAsUser']}:{security['runAsGroup']}"]
    options += ["--memory", container["resources"]["limits"]["memory"].removesuffix("i").lower()]
    options += [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    options += ["--read-only", "--security-opt", "no-new-privileges:true"]
    options += [word for name in container["securityContext"]["capabilities"]["drop"] for word in ("--cap-drop", name)]
    for mount in container["volumeMounts"]:
        # In Kubernetes a volume belongs to root and is writable for the group `fsGroup`, an emptyDir for everyone.
        mode = f"mode=2775,uid=0,gid={security['fsGroup']}" if mount["name"] == "state" else "mode=1777"
        options += ["--tmpfs", f"{mount['mountPath']}:rw,exec,{mode}"]
    return [*options, running.image, *container["args"]]


def _await_ready(name: str, seconds: float = 120) -> None:
    address = docker("port", name, "6066/tcp").stdout.split()[0]

    def ready() -> bool:
        assert docker("inspect", "--format", "{{.State.Running}}", name).stdout.strip() == "true", _logs(name)
        try:
            with urllib.request.urlopen(f"http://{address}/readyz", timeout=5) as answer:
                return int(answer.status) == 200
        except OSError:
            return False

    wait_for(ready, seconds)


def _logs(name: str) -> str:
    done = docker("logs", "--tail", "30", name)
    return done.stdout + done.stderr

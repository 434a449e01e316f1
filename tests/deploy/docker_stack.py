"""The image and the stack of docker-compose.yml in a real Docker engine, next to a stack that may already run.

All names and ports are separate: the Compose project, the volumes, the image tag, and the published ports.
"""

import os
import re
import shutil
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from deploy import stack
from deploy.kafka import broker as kafka

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
WORKERS = [name for name, each in COMPOSE["services"].items() if each.get("command", [""])[0] == "worker"]
BUILD_SECONDS = 900.0
PULL_SECONDS = 300.0
RUN_SECONDS = 180.0


def docker(
    *arguments: str | Path, seconds: float = RUN_SECONDS, check: bool = True, **more: Any
) -> "subprocess.CompletedProcess[str]":
    """Run `docker` and return its output. Fails with that output unless `check` is false."""
    done = subprocess.run(
        ["docker", *map(str, arguments)], capture_output=True, text=True, timeout=seconds, check=False, **more
    )
    shown = " ".join(map(str, arguments))
    assert not check or done.returncode == 0, (
        f"docker {shown}: {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-8000:]}"
    )
    return done


@cache
def missing() -> str | None:
    """Return why the image cannot be built and the stack cannot be started here, or None if both can."""
    try:
        if not stack.docker_runs():
            return "no Docker engine with Compose: image and stack are skipped"
    except stack.StackError as error:
        return f"{error}: image and stack are skipped"
    bases = set(re.findall(r"^FROM (\S+)", DOCKERFILE.read_text(), re.MULTILINE))
    bases |= {each["image"] for each in COMPOSE["services"].values() if not each["image"].startswith("neardup:")}
    for base in sorted(bases):
        if docker("image", "inspect", base, check=False).returncode == 0:
            continue
        pulled = docker("pull", "--quiet", base, seconds=PULL_SECONDS, check=False)
        if pulled.returncode:
            return f"Docker cannot pull {base} ({pulled.stderr.strip()}): image and stack are skipped"
    return None


class Stack:
    """A Compose project of its own in `directory`; `image` is the tag that its services run."""

    def __init__(self, directory: Path) -> None:
        self.project = f"neardup-test-{uuid.uuid4().hex[:8]}"
        self.image = f"{self.project}:first"
        self._directory = directory
        self._file = directory / "compose.yml"
        self._images: list[str] = []
        self._ports = {name: kafka.free_port() for name, each in COMPOSE["services"].items() if "ports" in each}

    def build(self) -> None:
        """Build the image as `docker compose build` does."""
        docker("build", "--file", DOCKERFILE, "--tag", self.image, ROOT, seconds=BUILD_SECONDS)
        self._images.append(self.image)

    def derive(self, tag: str, changed: dict[str, str], *steps: str) -> str:
        """Build an image from the first one, with other sources: text by path in the package. Return its tag."""
        image, context = f"{self.project}:{tag}", self._directory / tag
        context.mkdir()
        lines = [f"FROM {self.image}", "USER root"]
        package = "/opt/neardup/lib/python3.11/site-packages"
        for path, text in changed.items():
            (context / Path(path).name).write_text(text)
            lines.append(f"COPY {Path(path).name} {package}/{path}")
        (context / "Dockerfile").write_text("\n".join([*lines, *steps, "USER 10001:10001", ""]))
        docker("build", "--tag", image, context, seconds=BUILD_SECONDS)
        self._images.append(image)
        return image

    def up(self, image: str | None = None) -> None:
        """Start all services, or replace those whose image changed, and wait until all are healthy."""
        self._file.write_text(yaml.safe_dump(self._services(image or self.image)))
        done = self._compose("up", "--detach", "--wait", "--wait-timeout", "300", seconds=360, check=False)
        assert done.returncode == 0, done.stderr[-2000:] + self.compose("logs", "--tail", "25", *WORKERS)

    def compose(self, *arguments: str, seconds: float = RUN_SECONDS, check: bool = True) -> str:
        """Run a command of Compose on this project; return its output."""
        return self._compose(*arguments, seconds=seconds, check=check).stdout

    def _compose(self, *arguments: str, seconds: float, check: bool) -> "subprocess.CompletedProcess[str]":
        options = ("--ansi", "never", "--project-name", self.project, "--project-directory", str(ROOT))
        return docker("compose", *options, "--file", self._file, *arguments, seconds=seconds, check=check)

    def container(self, service: str) -> str:
        """Return the id of the container of a service, running or not."""
        return self.compose("ps", "--all", "--quiet", service).strip()

    def run(self, *command: str, image: str | None = None, options: Sequence[str] = (), text: str | None = None) -> str:
        """Run a command in a new container of the image; return what it prints."""
        interactive = [] if text is None else ["--interactive"]
        return docker("run", "--rm", *interactive, *options, image or self.image, *command, input=text).stdout

    def get(self, service: str, path: str) -> str:
        """Return the response of a service on its published port."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[service]}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def metric(self, service: str, name: str) -> float:
        """Return the sum of a metric over its labels."""
        lines = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", self.get(service, "/metrics"), re.MULTILINE)
        return sum(map(float, lines))

    @property
    def broker(self) -> str:
        """The address of Kafka for programs on this machine."""
        return f"127.0.0.1:{self._ports['kafka']}"

    def neardup(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of this environment on the broker of the stack."""
        command = [str(Path(sys.executable).with_name("neardup")), *arguments]
        used = {**os.environ, "NEARDUP_BROKER": self.broker, **environment}
        return subprocess.run(command, env=used, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)

    def remove(self) -> None:
        """Remove containers, networks, volumes and images of this project. Never raises for what does not exist."""
        if self._file.exists():
            self.compose("down", "--volumes", "--remove-orphans", "--timeout", "5", check=False)
        if self._images:
            docker("rmi", "--force", *self._images, check=False)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _services(self, image: str) -> dict[str, Any]:
        """The services of docker-compose.yml with this image, and the ports of this project."""
        text = yaml.safe_dump({key: value for key, value in COMPOSE.items() if not key.startswith(("x-", "name"))})
        made: dict[str, Any] = yaml.safe_load(text)
        for name, each in made["services"].items():
            if each["image"].startswith("neardup:"):
                each["image"] = image
                each["pull_policy"] = "never"
            each.pop("build", None)
            if name in self._ports:
                address, published, target = each["ports"][0].split(":")
                each["ports"] = [f"{address}:{self._ports[name]}:{target}"]
                listeners = each["environment"].get("KAFKA_ADVERTISED_LISTENERS") if name == "kafka" else None
                if listeners:
                    assert f"127.0.0.1:{published}" in listeners
                    each["environment"]["KAFKA_ADVERTISED_LISTENERS"] = listeners.replace(
                        f"127.0.0.1:{published}", self.broker
                    )
        return made

"""Runs the stack of docker-compose.yml: in Docker if it is available, otherwise as local processes.

    python -m deploy.stack up|down|status [--data .run] [--kafka-version 4.3.1]

Without Docker, docker-compose.yml remains the only description of the stack: `translate` maps its commands, environment
and start order to processes on one machine. Kafka then comes from deploy/kafka/broker.py. Each process is detached and
keeps its pid, log and data in a directory of its own under --data. `down` keeps these directories, like volumes.
"""

import argparse
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from http.client import HTTPException
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = ROOT / "docker-compose.yml"
BROKER = ROOT / "deploy" / "kafka" / "broker.py"
PASSWORD_FILE = ROOT / ".run" / "grafana.env"  # docker-compose.yml names it
LEAST_COMPOSE = (2, 24)  # the first with env_file.required
NEARDUP = Path(sys.executable).with_name("neardup")
READY_SECONDS = 120.0
ONE_SHOT_SECONDS = 600.0  # the first start fetches Kafka
GRACE_SECONDS = 10.0  # Docker's default
PORT_SECONDS = 2.0  # the port of a process that ended may stay in use for a moment


class StackError(Exception):
    """The stack cannot be started or stopped; the message explains why."""


@dataclass(frozen=True)
class Process:
    """A service as a local process. A process without a port must end before the next one starts."""

    name: str
    command: tuple[str, ...]
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    port: int | None = None
    ready_path: str | None = None  # None: ready when the port accepts connections
    grace_seconds: float = GRACE_SECONDS

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def pid_file(self) -> Path:
        return self.directory / "pid"

    def listens(self) -> bool:
        """Return whether its port accepts connections."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port or 0), 1):
            return True
        return False

    def ready(self) -> bool:
        """Return whether it is ready now."""
        if self.ready_path is None:
            return self.listens()
        with contextlib.suppress(OSError, HTTPException):  # a status of 400 or more is an OSError
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.ready_path}", timeout=2).close()  # nosec B310
            return True
        return False

    def pid(self) -> int | None:
        """Return the pid of the process that `up` started if it still runs, even if the system reuses pids."""
        with contextlib.suppress(OSError, ValueError):
            pid, started = json.loads(self.pid_file.read_text())
            if started and _started(pid) == started:
                return int(pid)
        return None


def translate(compose: Mapping[str, Any], data: Path, kafka_version: str | None = None) -> list[Process]:
    """Return the services of a compose file that can run without Docker, each after its dependencies.

    The default of `kafka_version` is the tag of the image.
    """
    services: dict[str, dict[str, Any]] = compose["services"]
    everywhere = "0.0.0.0"  # noqa: S104 # nosec B104
    addresses = {everywhere: "127.0.0.1"}
    addresses |= {f"{name}:9092": f"127.0.0.1:{_published(each)}" for name, each in services.items() if _is_kafka(each)}
    processes = []
    for name in TopologicalSorter({name: each.get("depends_on", ()) for name, each in services.items()}).static_order():
        service = services[name]
        if _is_kafka(service):
            processes += _kafka(name, service, data, kafka_version or service["image"].rpartition(":")[2])
        elif service["image"].startswith("neardup:"):
            processes.append(_neardup(name, service, data / name, addresses))
    return processes


def _neardup(name: str, service: Mapping[str, Any], directory: Path, addresses: Mapping[str, str]) -> Process:
    port = _published(service)
    environment = {key: addresses.get(value, value) for key, value in service["environment"].items()}
    if port:
        # Workers share the host: each takes its published port and a state directory of its own.
        environment |= {"NEARDUP_WEB_PORT": str(port), "NEARDUP_STATE": str(directory / "state")}
    return Process(name, (str(NEARDUP), *service["command"]), directory, environment, port, "/readyz", _grace(service))


def _kafka(name: str, service: Mapping[str, Any], data: Path, version: str) -> list[Process]:
    broker = (sys.executable, str(BROKER))
    port = _published(service)
    run = (*broker, "run", "--data", str(data / f"kafka-{version}"), "--port", str(port), "--version", version)
    return [
        Process(f"{name}-fetch", (*broker, "fetch", "--version", version), data / f"{name}-fetch"),
        Process(name, run, data / name, port=port, grace_seconds=_grace(service)),
    ]


def _is_kafka(service: Mapping[str, Any]) -> bool:
    return str(service["image"]).startswith("apache/kafka:")


def _published(service: Mapping[str, Any]) -> int | None:
    """Return the port on the host: the middle of 127.0.0.1:6067:6066."""
    ports = service.get("ports")
    return int(ports[0].split(":")[1]) if ports else None


def _grace(service: Mapping[str, Any]) -> float:
    period = service.get("stop_grace_period")
    return float(period.removesuffix("s")) if period else GRACE_SECONDS


def up(processes: Sequence[Process]) -> None:
    """Start the processes that do not run, in order, each when the previous one is ready."""
    for each in processes:
        each.directory.mkdir(parents=True, exist_ok=True)
        if each.port is None:
            _run(each)
        elif pid := each.pid():
            print(f"{each.name}: already running, pid {pid}")
        else:
            _start(each)


def down(processes: Sequence[Process]) -> None:
    """Stop all processes in reverse order: with SIGTERM, and with SIGKILL after the grace period."""
    for each in reversed(processes):
        _signal(each, signal.SIGTERM, each.grace_seconds)
        _signal(each, signal.SIGKILL, GRACE_SECONDS)
        if pid := each.pid():
            raise StackError(f"{each.name}: expected pid {pid} to end after SIGKILL, but it still runs")
        each.pid_file.unlink(missing_ok=True)


def status(processes: Sequence[Process]) -> None:
    """Print the state of every process."""
    row = "{:<12} {:>8}  {:<10} {:<22} {}".format
    print(row("service", "pid", "state", "address", "log"))
    for each in processes:
        if each.port is not None:
            pid = each.pid()
            state = "stopped" if pid is None else "ready" if each.ready() else "not ready"
            print(row(each.name, pid or "-", state, f"127.0.0.1:{each.port}", os.path.relpath(each.log)))


def _run(process: Process) -> None:
    started = _spawn(process)
    _wait(lambda: started.poll() is not None, ONE_SHOT_SECONDS)
    if started.returncode != 0:
        started.kill()
        raise StackError(f"{process.name} ended with exit code {started.wait()}:\n{_tail(process.log)}")


def _start(process: Process) -> None:
    _wait(lambda: not process.listens(), PORT_SECONDS)
    if process.listens():
        raise StackError(f"{process.name}: another program listens on port {process.port}; stop it first")
    started = _spawn(process)
    process.pid_file.write_text(json.dumps([started.pid, _started(started.pid)]))
    started.returncode = 0  # the process outlives this program; without a return code, Popen warns
    _wait(lambda: process.ready() or not process.pid(), READY_SECONDS)
    if not process.pid() or not process.ready():
        wrong = f"is not ready after {READY_SECONDS:g} s" if process.pid() else "ended"
        raise StackError(f"{process.name} {wrong}:\n{_tail(process.log)}")


def _spawn(process: Process) -> subprocess.Popen[bytes]:
    # As in a container, settings come only from the compose file, and not from the environment of the caller.
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARDUP_")}
    with process.log.open("ab") as log:
        return subprocess.Popen(
            process.command, cwd=process.directory, env=inherited | process.environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def _signal(process: Process, which: signal.Signals, seconds: float) -> None:
    if pid := process.pid():
        print(f"{process.name}: {which.name} to pid {pid}", flush=True)
        with contextlib.suppress(ProcessLookupError):  # the process may have ended since
            os.kill(pid, which)
        _wait(lambda: not process.pid(), seconds)


def _wait(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)


def _started(pid: int) -> str | None:
    """Return the start time of a process as the system reports it, or None if it is gone or a zombie."""
    if Path("/proc/self/stat").exists():
        with contextlib.suppress(OSError):
            # The name in parentheses may contain spaces. The first field after it is the state, the 20th is the start.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return None if fields[0] in "ZX" else fields[19]
        return None
    said = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = said.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()


def _tail(path: Path) -> str:
    return "".join(path.read_text(errors="replace").splitlines(keepends=True)[-30:])


def docker_runs() -> bool:
    """Return whether a Docker engine answers. Raises StackError if its Compose is too old to read the file."""
    if shutil.which("docker") is None or _output_of("docker", "info") is None:
        return False
    version = _output_of("docker", "compose", "version", "--short")
    if version is None:
        print("Docker runs, but `docker compose` is not installed: the stack runs as local processes", flush=True)
        return False
    found = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if found < LEAST_COMPOSE:
        least = ".".join(map(str, LEAST_COMPOSE))
        raise StackError(f"expected Docker Compose {least} or newer, got {version.strip()}: upgrade it")
    return True


def _output_of(*command: str) -> str | None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def keep_password(path: Path) -> None:
    """Write a password for Grafana's user `admin` to a file that only its owner can read, unless there is one.

    Compose reads the file and sets its variables in the container. Raises StackError if other users can read the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), open(path, "x", opener=_for_owner_alone) as file:
        file.write("# `docker compose up` sets these variables in the container of Grafana. The user is `admin`.\n")
        file.write("GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION=false\n")
        file.write(f"GF_SECURITY_ADMIN_PASSWORD={secrets.token_urlsafe()}\n")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise StackError(
            f"expected {path} with a password to be readable for its owner alone, got mode {mode:o}: "
            f"delete it for a new password, or run chmod 600 {path}"
        )


def _for_owner_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _in_docker(command: str) -> int:
    arguments = {"up": ["up", "-d", "--build", "--wait"], "down": ["down"], "status": ["ps"]}[command]
    if command == "up":
        keep_password(PASSWORD_FILE)
    code = subprocess.run(["docker", "compose", "-f", COMPOSE, *arguments], check=False).returncode
    if command == "up" and code == 0:
        print(f"Grafana: http://127.0.0.1:3000, user admin, password in {os.path.relpath(PASSWORD_FILE)}", flush=True)
    return code


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("up", "down", "status"))
    parser.add_argument("--data", type=Path, default=ROOT / ".run", help="directory for the files of local processes")
    parser.add_argument(
        "--kafka-version", help="version of a local broker; default: that of the image in docker-compose.yml"
    )
    options = parser.parse_args()
    compose = yaml.safe_load(COMPOSE.read_text())
    processes = translate(compose, options.data.resolve(), options.kafka_version)
    try:
        # Processes that an earlier call started stay under this program, even if Docker was installed since then.
        if not any(each.pid() for each in processes) and docker_runs():
            sys.exit(_in_docker(options.command))
        if options.command == "down":
            down(processes)
            return
        if options.command == "up":
            up(processes)
        status(processes)
        skipped = sorted(compose["services"].keys() - {each.name for each in processes})
        print(f"only in Docker: {', '.join(skipped)}")
    except StackError as error:
        sys.exit(f"stack: {error}")


if __name__ == "__main__":
    main()

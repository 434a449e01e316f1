"""Tests of the stack without Docker: the translation of docker-compose.yml, and recognition of its processes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import stack
from deploy.kafka import broker
from deploy.stack import Process, StackError, translate

DATA = Path("/data")


def _worker(port: int, **more: Any) -> dict[str, Any]:
    environment = {
        "NEARDUP_BROKER": "kafka:9092",
        "NEARDUP_WEB_HOST": "0.0.0.0",
        "NEARDUP_WEB_PORT": "6066",
        "NEARDUP_STATE": "/var/lib/neardup",
        "NEARDUP_LOG_FORMAT": "json",
    }
    ports = [f"127.0.0.1:{port}:6066"]
    return {"image": "neardup:1.2.3", "command": ["worker", "any"], "environment": environment, "ports": ports, **more}


def _compose() -> dict[str, Any]:
    """Return services in an order that differs from that of their dependencies."""
    return {
        "services": {
            "second": _worker(7002, depends_on={"topics": {"condition": "service_completed_successfully"}}),
            "first": _worker(7001, depends_on=["topics"], stop_grace_period="45s"),
            "topics": {
                "image": "neardup:1.2.3",
                "command": ["topics", "create"],
                "environment": {"NEARDUP_BROKER": "kafka:9092"},
                "depends_on": {"kafka": {"condition": "service_healthy"}},
            },
            "kafka": {"image": "apache/kafka:1.2.3", "ports": ["127.0.0.1:7092:19092"], "stop_grace_period": "60s"},
            "grafana": {"image": "grafana/grafana:1.2.3", "ports": ["127.0.0.1:3000:3000"]},
        }
    }


def _translated(**more: Any) -> dict[str, Process]:
    return {each.name: each for each in translate(_compose(), DATA, **more)}


def test_each_process_follows_its_dependencies() -> None:
    names = list(_translated())
    assert names[:3] == ["kafka-fetch", "kafka", "topics"]
    assert sorted(names[3:]) == ["first", "second"]


def test_services_that_need_docker_are_left_out() -> None:
    assert "grafana" not in _translated()


def test_a_worker_gets_the_environment_of_its_container_on_this_host() -> None:
    assert _translated()["second"].environment == {
        "NEARDUP_BROKER": "127.0.0.1:7092",
        "NEARDUP_WEB_HOST": "127.0.0.1",
        "NEARDUP_WEB_PORT": "7002",
        "NEARDUP_STATE": "/data/second/state",
        "NEARDUP_LOG_FORMAT": "json",
    }


def test_a_worker_runs_the_command_beside_this_python() -> None:
    first = _translated()["first"]
    assert first.command == (str(Path(sys.executable).parent / "neardup"), "worker", "any")
    assert (first.port, first.ready_path, first.grace_seconds) == (7001, "/readyz", 45)


def test_a_service_without_a_port_is_a_one_shot() -> None:
    topics = _translated()["topics"]
    assert topics.port is None
    assert topics.environment == {"NEARDUP_BROKER": "127.0.0.1:7092"}


def test_kafka_is_the_broker_without_docker_on_the_published_port() -> None:
    kafka = _translated()["kafka"]
    assert kafka.command[1:] == (
        str(stack.BROKER), "run", "--data", "/data/kafka-1.2.3", "--port", "7092", "--version", "1.2.3",
    )  # fmt: skip
    assert (kafka.port, kafka.ready_path, kafka.grace_seconds) == (7092, None, 60)


def test_another_version_of_kafka_has_separate_data() -> None:
    named = _translated(kafka_version="9.8.7")
    assert named["kafka"].command[-5:] == ("/data/kafka-9.8.7", "--port", "7092", "--version", "9.8.7")
    assert named["kafka-fetch"].command[-1] == "9.8.7"


def test_the_real_file_is_translated_without_container_paths() -> None:
    compose = yaml.safe_load(stack.COMPOSE.read_text())
    processes = translate(compose, DATA)
    assert [each.name for each in processes][:3] == ["kafka-fetch", "kafka", "topics"]
    assert compose["services"].keys() - {each.name for each in processes} == {"prometheus", "grafana"}
    for each in processes:
        words = " ".join([*each.command, *each.environment.values()])
        assert "kafka:9092" not in words
        assert "0.0.0.0" not in words.replace("127.0.0.1", "")
        assert "/var/lib" not in words
    ports = [each.port for each in processes if each.port]
    assert len(set(ports)) == len(ports)


def _process(directory: Path, *words: str, port: int | None = None) -> Process:
    return Process("it", (sys.executable, *words), directory, port=port)


def test_a_recycled_pid_is_not_ours(tmp_path: Path) -> None:
    process = _process(tmp_path)
    assert process.pid() is None
    process.pid_file.write_text(json.dumps([os.getpid(), stack._started(os.getpid())]))
    assert process.pid() == os.getpid()
    process.pid_file.write_text(json.dumps([os.getpid(), "another time"]))
    assert process.pid() is None
    process.pid_file.write_text("")
    assert process.pid() is None


def test_an_ended_process_does_not_count_as_running_before_it_is_reaped(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = stack._started(child.pid)
        assert started
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert stack._started(child.pid) is None


def test_up_shows_the_end_of_the_log_of_a_failed_process(tmp_path: Path) -> None:
    process = _process(tmp_path / "it", "-c", "import sys; sys.exit('the reason')")
    with pytest.raises(StackError, match=r"(?s)it ended with exit code 1:.*the reason"):
        stack.up([process])


def test_down_stops_only_the_processes_that_up_started(tmp_path: Path) -> None:
    port = broker.free_port()
    process = _process(tmp_path / "it", "-m", "http.server", str(port), "--bind", "127.0.0.1", port=port)
    stack.up([process])
    pid = process.pid()
    assert pid
    assert process.ready()
    stack.up([process])
    assert process.pid() == pid
    other = Process("other", process.command, tmp_path / "other", port=port)
    other.directory.mkdir()
    with pytest.raises(StackError, match="another program listens"):
        stack.up([other])
    stack.down([other, process])
    assert process.pid() is None
    assert not process.pid_file.exists()
    stack.up([process])
    assert process.pid() not in (None, pid)
    stack.down([process])


def test_the_password_is_created_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / ".run" / "grafana.env"
    old = os.umask(0)  # the file mode must not depend on the umask
    try:
        stack.keep_password(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    first = path.read_text()
    [password] = re.findall(r"^GF_SECURITY_ADMIN_PASSWORD=(\S{32,})$", first, re.MULTILINE)
    stack.keep_password(path)
    assert path.read_text() == first
    stack.keep_password(tmp_path / "other.env")
    assert password not in (tmp_path / "other.env").read_text()


def test_a_password_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "grafana.env"
    stack.keep_password(path)
    path.chmod(0o644)
    with pytest.raises(StackError, match=r"readable for its owner alone, got mode 644: .*chmod 600"):
        stack.keep_password(path)


@pytest.mark.parametrize(
    ("version", "runs"), [("2.24.0", True), ("v2.26.1-4", True), ("5.1", True), ("2.23.3", False), ("1.29.2", False)]
)
def test_a_compose_that_cannot_read_the_file_is_refused(
    version: str, runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\necho {version}\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    if runs:
        assert stack.docker_runs()
    else:
        with pytest.raises(StackError, match=rf"Compose 2\.24 or newer, got {version}"):
            stack.docker_runs()

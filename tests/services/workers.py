"""Services as processes, started in the same way as by an operator."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from itertools import count
from pathlib import Path
from typing import Any

from deploy.kafka import broker as kafka
from neardup.settings import Settings

BIN = Path(sys.executable).parent


class Worker:
    """A process with a state directory, a port and a log of its own."""

    process: "subprocess.Popen[bytes]"

    def __init__(self, settings: Settings, directory: Path, number: int, *command: str) -> None:
        self.port = kafka.free_port()
        self.log = directory / f"worker-{number}.log"
        self.state = directory / f"state-{number}"
        self._directory, self._command = directory, command
        self._environment = os.environ | environment_of(settings)
        self._environment |= {"NEARDUP_WEB_PORT": str(self.port), "NEARDUP_STATE": str(self.state)}
        self.start()

    def start(self) -> None:
        """Start the process, or restart it with the same state after it ended."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, cwd=self._directory
            )

    def kill(self) -> None:
        """Kill the process with SIGKILL, even if it is stopped."""
        self.process.kill()
        self.process.wait()

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def await_ready(self, seconds: float = 40) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            try:
                status, body = self.get("/readyz")
                if status == 200:
                    return dict(json.loads(body))
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError(f"not ready after {seconds} s:\n{self.log.read_text()}")

    def terminate(self) -> int:
        self.process.terminate()
        return self.process.wait(20)


class Deployment:
    def __init__(self, settings: Settings, directory: Path) -> None:
        self.settings = settings
        self.directory = directory
        self.workers: list[Worker] = []
        self._numbers = count()

    def start(self, *command: str) -> Worker:
        """Start a command of this environment."""
        name, *arguments = command
        return self.start_other(str(BIN / name), *arguments)

    def start_other(self, *command: str) -> Worker:
        """Start any command."""
        worker = Worker(self.settings, self.directory, next(self._numbers), *command)
        self.workers.append(worker)
        return worker

    def neardup(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = os.environ | environment_of(self.settings)
        command = [str(BIN / "neardup"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def environment_of(settings: Settings) -> dict[str, str]:
    return {variable: value for variable, value, _ in settings.describe()}

"""The programs under deploy/, run as users run them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ("deploy.stack", "deploy.kafka.broker")


@pytest.mark.parametrize("module", MODULES)
def test_a_program_runs_as_a_module(module: str) -> None:
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"python -m {module} " in done.stdout


@pytest.mark.parametrize("arguments", [["-m", "deploy.kafka.broker"], [str(ROOT / "deploy" / "kafka" / "broker.py")]])
def test_the_broker_needs_only_the_standard_library(arguments: list[str]) -> None:
    # -S leaves out the installed packages, the path of the script is how `deploy.stack` starts it.
    command = [sys.executable, "-S", *arguments, "fetch", "--help"]
    done = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--version" in done.stdout


def test_the_makefile_runs_modules_that_exist() -> None:
    modules = re.findall(r"-m (deploy\.[\w.]+)", (ROOT / "Makefile").read_text())
    assert set(modules) == set(MODULES)
    for module in modules:
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()

"""Benchmarks: `python tests/bench/run.py NAME [--full] [--json]`, in the project's environment.

Each figure is a ratio, or stands beside a peer or a limit of the machine that was measured in the same run. The exit
code is 1 when a goal is missed. The output of `--json` is the input of `deploy/docs/benchmarks.md`.
"""

import argparse
import importlib
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.result import Result  # noqa: E402

NAMES = ("runner", "features", "index", "pipeline", "cluster")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*NAMES, "all"], help="Benchmark to run.")
    parser.add_argument("--full", action="store_true", help="Run at the size of the published figures.")
    parser.add_argument("--json", action="store_true", help="Print JSON lines: the run, then one object per figure.")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="Draw the growth of the tables to this SVG file (index)."
    )
    options = parser.parse_args()
    results: list[Result] = []
    for name in NAMES if options.name == "all" else [options.name]:
        more = {"plot": options.plot} if name == "index" else {}
        results += importlib.import_module(f"tests.bench.{name}").run(full=options.full, **more)
    if options.json:
        print(json.dumps(_run()))
        for result in results:
            print(json.dumps(result.as_dict()))
    else:
        print(_machine())
        for result in results:
            print(_row(result))
    sys.exit(any(result.holds is False for result in results))


def _run() -> dict[str, str]:
    """Return the description of this run: the command, the machine and the date."""
    # The other arguments have no influence on the figures.
    arguments = [each for each in sys.argv[1:] if each in (*NAMES, "all", "--full")]
    command = " ".join(["python tests/bench/run.py", *arguments])
    return {"command": command, "machine": _machine(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def _row(result: Result) -> str:
    verdict = {True: "holds", False: "MISSED", None: ""}[result.holds]
    goal = "" if result.goal is None else f"goal {result.goal:g}"
    return f"{result.name:28} {result.value:>14,.2f} {result.unit:16} {goal:12} {verdict:7} against {result.against}"


if __name__ == "__main__":
    main()

"""Benchmarks: `python tests/bench/run.py NAME [--full] [--json]`, in the project's environment.

Each figure is a ratio, or is reported together with a peer or a limit of the machine that the same run measured. The
exit code is 1 if a goal is missed.
"""

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "deploy" / "kafka"), str(ROOT / "deploy")]

from tests.bench.result import Result  # noqa: E402

NAMES = ("runner", "features", "index", "pipeline", "cluster")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*NAMES, "all"], help="the benchmark to run")
    parser.add_argument("--full", action="store_true", help="use the size of the documented figures")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line instead of a table")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="index only: draw the growth to this SVG file")
    options = parser.parse_args()
    results: list[Result] = []
    for name in NAMES if options.name == "all" else [options.name]:
        more = {"plot": options.plot} if name == "index" else {}
        results += importlib.import_module(f"tests.bench.{name}").run(full=options.full, **more)
    if options.json:
        for result in results:
            print(json.dumps(result.as_dict()))
    else:
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        for result in results:
            print(_row(result))
    sys.exit(any(result.holds is False for result in results))


def _row(result: Result) -> str:
    verdict = {True: "holds", False: "MISSED", None: ""}[result.holds]
    goal = "" if result.goal is None else f"goal {result.goal:g}"
    return f"{result.name:28} {result.value:>14,.2f} {result.unit:16} {goal:12} {verdict:7} against {result.against}"


if __name__ == "__main__":
    main()

"""Measurements of fault tests, printed at the end of the run and stored as JSON."""

import json
import os
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / ".run" / "faults.json"

_recorded: list[dict[str, Any]] = []


def record(what: str, **figures: float | int | str) -> None:
    """Add a row to the table of this run. In the file it replaces the row with the same name."""
    row = {"what": what, **figures}
    _recorded.append(row)
    kept = json.loads(FILE.read_text())["rows"] if FILE.exists() else []
    rows = [each for each in kept if each["what"] != what] + [row]
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=1) + "\n")


def lines() -> list[str]:
    """Format the rows of this run. Consecutive rows with equal columns form one table."""
    found: list[str] = []
    columns: list[str] = []
    for row in _recorded:
        if list(row) != columns:
            columns = list(row)
            found += ["| " + " | ".join(name.replace("_", " ") for name in columns) + " |", "|---" * len(columns) + "|"]
        found.append("| " + " | ".join(_shown(value) for value in row.values()) + " |")
    return found


def _shown(value: float | int | str) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value

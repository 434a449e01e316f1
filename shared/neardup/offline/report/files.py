"""Files of the report of the last pass, next to its results: JSON and a page of HTML."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from neardup.offline.report.report import Report
from neardup.offline.report.text import html
from neardup.util.atomic_file import write_text

REPORT: Final = "report.json"
PAGE: Final = "report.html"


def write_report(directory: Path, report: Report) -> None:
    """Write both files, replacing those of the previous pass."""
    write_text(directory / REPORT, json.dumps(asdict(report), indent=1))
    write_text(directory / PAGE, html(report))

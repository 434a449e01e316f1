"""What a process and those that it started take, as the kernel counts it."""

import os
import re
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Of all of them so far."""
    ticks = 0
    for each in _family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(pid: int, kind: str) -> int:
    """Bytes of all of them: `VmRSS`, or `VmHWM` for the most that each ever had. What they share counts for each."""
    return sum(_kilobytes(each, kind) for each in _family(pid)) * 1024


def _family(pid: int) -> list[int]:
    """It and its descendants."""
    children = [child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
    return [pid, *(each for child in children for each in _family(int(child)))]


def _kilobytes(pid: int, kind: str) -> int:
    found = re.search(rf"{kind}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found, f"process {pid} has ended"
    return int(found[1])

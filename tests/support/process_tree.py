"""Resource usage of a process and its descendants, as counted by the operating system."""

import os
import re
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Return the processor time that the processes have used so far."""
    ticks = 0
    for each in _family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(pid: int, kind: str) -> int:
    """Return `VmRSS` (or `VmHWM`, the peak) of all processes in bytes. Shared memory counts once per process."""
    return sum(_kilobytes(each, kind) for each in _family(pid)) * 1024


def mapped(pid: int, directory: Path) -> int:
    """Return the resident bytes of mapped files below a directory. The system can reclaim this memory."""
    return sum(_mapped(each, f"{directory}/") for each in _family(pid)) * 1024


def _family(pid: int) -> list[int]:
    """Return the ids of the process and its descendants."""
    children = [child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
    return [pid, *(each for child in children for each in _family(int(child)))]


def _kilobytes(pid: int, kind: str) -> int:
    found = re.search(rf"{kind}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found, f"process {pid} has ended"
    return int(found[1])


def _mapped(pid: int, below: str) -> int:
    inside, kilobytes = False, 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            fields = rest.split(maxsplit=4)
            inside = len(fields) == 5 and fields[4].startswith(below)
        elif inside and name == "Rss:":
            kilobytes += int(rest.split()[0])
    return kilobytes

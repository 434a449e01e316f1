"""Freed memory is used again, not asked for anew: seen by how many pages of memory the system has to map."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from neardup.runtime.freed_memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def work():
    buffer = bytearray()
    for _ in range(64):
        buffer.extend(bytes(1 << 17))
    return bytes(buffer)
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(way: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM, way], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about glibc")
def test_memory_is_mapped_once() -> None:
    assert faults("kept") < 100
    assert faults("returned") > 1000, "expected that by itself the memory goes back to the system"

"""Effects of the garbage collector and allocator settings, measured in processes of their own."""

import platform
import subprocess
import sys

import pytest

_HELD = 100_000
_YOUNG_OBJECTS = f"""
import collections, gc, time
from neardup.runtime.process_tuning import tune_process

tune_process()
held = collections.deque(maxlen={_HELD})
ends = time.monotonic() + 2
while time.monotonic() < ends:
    for _ in range(1000):
        held.append([held])
    time.sleep(0.005)
print(len(held), len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)))
"""
_PAGE_FAULTS = """
import resource, sys
from neardup.runtime.process_tuning import tune_process
if sys.argv[1] == "tuned":
    tune_process()
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


def output_of(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_young_objects_do_not_pile_up_while_as_many_are_freed_as_created() -> None:
    """Freed objects are subtracted from the count of new ones, so the default schedule would start no collection."""
    held, young = map(int, output_of(_YOUNG_OBJECTS).split())
    assert held == _HELD
    assert young < _HELD // 2, "expected the objects of a few timer intervals, not all that are held"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_a_freed_buffer_is_reused_without_page_faults() -> None:
    assert int(output_of(_PAGE_FAULTS, "tuned")) < 100
    assert int(output_of(_PAGE_FAULTS, "default")) > 1000, "expected that glibc returns the buffer by default"

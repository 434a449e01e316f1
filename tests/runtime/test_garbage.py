"""The collector of cycles in a process that works through a stream."""

import subprocess
import sys

_HELD = 100_000
_PROGRAM = f"""
import collections, gc, time
from neardup.runtime.garbage import collect_seldom

collect_seldom()
held = collections.deque(maxlen={_HELD})
ends = time.monotonic() + 2
while time.monotonic() < ends:
    for _ in range(1000):
        held.append([held])
    time.sleep(0.005)
print(len(held), len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)))
"""


def test_what_replaces_as_much_as_it_makes_does_not_pile_up_young_objects() -> None:
    """Freed objects are taken off the count of new ones, so that the collector by itself would never begin."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    held, young = map(int, done.stdout.split())
    assert held == _HELD
    assert young < _HELD // 2, "expected a few looks' worth, not all that is held"

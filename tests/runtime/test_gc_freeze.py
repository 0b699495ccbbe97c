"""Full garbage collections do not scan what was loaded before `freeze_gc`."""

import subprocess
import sys

_PROGRAM = """
import gc
import priocast.api
before = len(gc.get_objects())
priocast.freeze_gc()
after = len(gc.get_objects())
cycle = [None]
cycle[0] = cycle
del cycle
print(before, after, gc.get_freeze_count(), gc.collect() > 0)
"""


def test_existing_objects_are_not_scanned_and_later_garbage_is() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    before, after, frozen, collected = done.stdout.split()
    assert int(before) > 10_000
    assert int(after) < int(before) / 100
    assert int(frozen) > 10_000
    assert collected == "True"

"""Shorter pauses: what a program has loaded by the time it begins to work is not looked at again.

The interpreter's full collections go through every object there is, and all members of a busy group come to
theirs at about the same time. Most of what they look at are modules: with four members on two cores that took
33 to 65 ms, which is what the most urgent messages had to wait.
"""

import gc


def freeze_gc() -> None:
    """Let the garbage collector leave alone what is there now. For a process of one's own, once it is up."""
    gc.collect()
    gc.freeze()

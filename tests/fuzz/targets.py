"""What can be attacked, by name; a seed determines a run of a target completely."""

from collections.abc import Callable
from functools import partial
from typing import get_args

from fuzz.hostile_group import Target, run_group_case
from fuzz.hostile_view import run_view_case

TARGETS: dict[str, Callable[[int], int]] = {
    **{target: partial(run_group_case, target) for target in get_args(Target)},
    "bad packets": run_view_case,
}
"""Runs a seed of a target, and returns how many frames were sent; raises what went wrong."""

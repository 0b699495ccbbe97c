"""How many instructions of the interpreter this package executes: a cost that no machine and no load changes.

Compiled modules execute none, so it is counted on the sources. What a function written in C does, such as
decoding a packet, is one instruction.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import priocast

if TYPE_CHECKING:
    from _typeshed import TraceFunction

_PACKAGE = str(Path(priocast.__file__).parent)


class _Counter:
    """The functions that the interpreter calls, and what they have counted."""

    def __init__(self) -> None:
        self.instructions = 0

    def enter(self, frame: FrameType, _event: str, _argument: object) -> "TraceFunction | None":
        """A function is called: count its instructions if it is of this package."""
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self.execute

    def execute(self, _frame: FrameType, event: str, _argument: object) -> "TraceFunction | None":
        """An instruction, or the end of the function."""
        self.instructions += event == "opcode"
        return self.execute


def instructions_of(function: Callable[[], object]) -> int:
    """How many instructions of this package are executed in a call."""
    counter, before = _Counter(), sys.gettrace()
    sys.settrace(counter.enter)
    try:
        function()
    finally:
        sys.settrace(before)
    return counter.instructions

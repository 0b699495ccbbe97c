"""Prioritisation time, as the cost paper defines it: how long a protocol takes to order a message.

The paper measures, in a plain and in a prioritised protocol alike, from where the sequencer starts to handle
a message until it broadcasts it in its place (section 4.4). A message that waits in the queue for its turn is
not handled meanwhile. So there are two parts: the step in which messages *enter* the queue where priorities
act, and the turn in which they *leave* it and are sent. Everything else of these two steps counts, too:
validation, the window, building the packet.

A protocol has one way in, `step`. The timed protocol wraps it, and a process registers it in its place before
it joins: without it nothing is measured, and nothing costs.
"""

import time
from array import array
from typing import ClassVar, cast

from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import (
    Broadcast,
    Input,
    OrderingOptions,
    Output,
    Packet,
    Received,
    SendAll,
    Turn,
)
from priocast.core.protocol_interface import Protocol
from priocast.core.view import View
from priocast.protocols import PROTOCOLS, find_protocol
from priocast.protocols.flow.ordering_protocol import OrderingProtocol

ENTER, LEAVE = "enter", "leave"
_SEQUENCING, _SENDING = "sequencing", "sending"


class StepTimes:
    """The durations of steps, in nanoseconds, and how many messages each of them handled."""

    def __init__(self) -> None:
        self.took_ns = {part: array("q") for part in (ENTER, LEAVE)}
        self.counts = {part: array("q") for part in (ENTER, LEAVE)}
        self.is_recording = False

    def start(self) -> None:
        """From here on steps are recorded."""
        self.is_recording = True

    def stop(self) -> None:
        """No more steps are recorded."""
        self.is_recording = False

    def add(self, part: str, count: int, took_ns: int) -> None:
        """Record a step that handled messages."""
        if count and self.is_recording:
            self.took_ns[part].append(took_ns)
            self.counts[part].append(count)


class _TimedProtocol(Protocol):
    """Passes everything on to a protocol of the class `TIMED`, and reads the clock around its steps.

    It does not inherit from that class: in a compiled installation no interpreted class can, and calls
    within one that did would not be compiled calls. The attributes of the interface that a step may replace
    are copied after each step.
    """

    TIMED: ClassVar[type[Protocol]]
    TIMES: ClassVar[StepTimes]

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._timed = timed = self.TIMED(me, view, options, position)
        self._is_sequencing = timed.PRIORITIES_ACT == _SEQUENCING
        self.ranks, self.outgoing, self.stalls = timed.ranks, timed.outgoing, timed.stalls
        self.has_safe = timed.has_safe

    @classmethod
    def orderer(cls, view: View) -> ProcessId | None:
        return cls.TIMED.orderer(view)

    def step(self, event: Input, now: int) -> list[Output]:
        timed, began = self._timed, time.perf_counter_ns()
        outputs = timed.step(event, now)
        took_ns = time.perf_counter_ns() - began
        self.position_next, self.has_safe = timed.position_next, timed.has_safe
        if isinstance(event, Turn):
            self.TIMES.add(LEAVE, _leaving(outputs, self._is_sequencing), took_ns)
        elif self._is_sequencing and isinstance(event, Received):
            packet = event.packet
            self.TIMES.add(ENTER, 0 if _has_position(packet) else _count(packet), took_ns)
        elif not self._is_sequencing and isinstance(event, Broadcast):
            self.TIMES.add(ENTER, event.batch.count, took_ns)
        return outputs

    @property
    def backlog(self) -> int:
        return self._timed.backlog

    @property
    def idle(self) -> bool:
        return self._timed.idle

    @property
    def settled(self) -> bool:
        return self._timed.settled

    def head(self) -> OrderedBatch | None:
        return self._timed.head()

    def inspect(self, now: int) -> ProtocolInspection:
        return self._timed.inspect(now)

    def close(self) -> None:
        self._timed.close()
        self.position_next, self.has_safe = self._timed.position_next, self._timed.has_safe

    def unconsumed(self) -> list[OrderedBatch]:
        return self._timed.unconsumed()

    def unordered(self) -> list[Batch]:
        return self._timed.unordered()

    def on_undeliverable(self) -> None:
        self._timed.on_undeliverable()


#: What the rest of Priocast reads from the class of a protocol.
_CLASS_ATTRIBUTES = (
    *("NAME", "PACKETS", "PRIORITIES_ACT"),
    *("SENDS_BY_PRIORITY", "PARTITIONABLE", "TAKES_STARVATION_POLICY"),
)


def time_steps(order: str) -> StepTimes:
    """From here on, groups of this process that use this order record the times of its steps."""
    protocol, times = find_protocol(order), StepTimes()
    if protocol.PRIORITIES_ACT in (_SEQUENCING, _SENDING):
        fields = {name: getattr(protocol, name) for name in _CLASS_ATTRIBUTES}
        timed = type(
            f"Timed{protocol.__name__}", (_TimedProtocol,), fields | {"TIMED": protocol, "TIMES": times}
        )
        PROTOCOLS[order] = cast("type[OrderingProtocol]", timed)  # a group knows it by its interface only
    return times


def _leaving(outputs: list[Output], with_position: bool) -> int:
    """How many messages these outputs send to all: with their positions, if those are assigned here."""
    packets = (output.packet for output in outputs if isinstance(output, SendAll))
    return sum(_count(packet) for packet in packets if _has_position(packet) or not with_position)


def _count(packet: Packet) -> int:
    return sum(batch.count for batch in packet.messages)


def _has_position(packet: Packet) -> bool:
    return "position" in packet.__struct_fields__

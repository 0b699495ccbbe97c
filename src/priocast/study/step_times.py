"""Prioritisation time, as the cost paper defines it: how long a protocol takes to order a message.

The paper measures, in a plain and in a prioritised protocol alike, from where the sequencer starts to handle
a message until it broadcasts it in its place (section 4.4). A message that waits in the queue for its turn is
not handled meanwhile. So there are two parts: the step in which messages *enter* the queue where priorities
act, and the turn in which they *leave* it and are sent. Everything else of these two steps counts, too:
validation, the window, building the packet.

A protocol has one way in, `step`. The timed protocol is a subclass of it that a process registers in its
place before it joins: without it nothing is measured, and nothing costs.
"""

import time
from array import array

from priocast.core.protocol import Broadcast, Input, Output, Packet, Received, SendAll, Turn
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


def time_steps(order: str) -> StepTimes:
    """From here on, groups of this process that use this order record the times of its steps."""
    protocol, times = find_protocol(order), StepTimes()
    if protocol.PRIORITIES_ACT in (_SEQUENCING, _SENDING):
        PROTOCOLS[order] = _timed(protocol, times)
    return times


def _timed(protocol: type[OrderingProtocol], times: StepTimes) -> type[OrderingProtocol]:
    clock, is_sequencing = time.perf_counter_ns, protocol.PRIORITIES_ACT == _SEQUENCING

    class TimedProtocol(protocol):  # type: ignore[valid-type,misc]  # a class that is known only now
        def step(self, event: Input, now: int) -> list[Output]:
            began = clock()
            outputs: list[Output] = super().step(event, now)
            took_ns = clock() - began
            if isinstance(event, Turn):
                times.add(LEAVE, _leaving(outputs, is_sequencing), took_ns)
            elif is_sequencing and isinstance(event, Received):
                packet = event.packet
                times.add(ENTER, 0 if _has_position(packet) else _count(packet), took_ns)
            elif not is_sequencing and isinstance(event, Broadcast):
                times.add(ENTER, event.batch.count, took_ns)
            return outputs

    return TimedProtocol


def _leaving(outputs: list[Output], with_position: bool) -> int:
    """How many messages these outputs send to all: with their positions, if those are assigned here."""
    packets = (output.packet for output in outputs if isinstance(output, SendAll))
    return sum(_count(packet) for packet in packets if _has_position(packet) or not with_position)


def _count(packet: Packet) -> int:
    return sum(batch.count for batch in packet.messages)


def _has_position(packet: Packet) -> bool:
    return "position" in packet.__struct_fields__

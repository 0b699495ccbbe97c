"""What happened in a run, in numbers: a fault that never occurs tests nothing, so occurrences are counted."""

import msgspec


class Counters(msgspec.Struct):
    """One run's counts; `occurred` has those of faults and of transitions between views, by kind."""

    broadcasts: int = 0
    deliveries: int = 0
    turns: int = 0
    frames: int = 0
    frame_bytes: int = 0
    views: int = 0
    settling_ns: int = 0
    occurred: dict[str, int] = {}

    def count(self, kind: str, times: int = 1) -> None:
        """Something of this kind happened."""
        self.occurred[kind] = self.occurred.get(kind, 0) + times


#: What can hit a run.
FAULT_KINDS = (
    "loss",
    "duplication",
    "reordering",
    "cut: halves",
    "cut: isolated",
    "cut: one-way",
    "cut: bridge",
    "cut: ring",
    "pause",
    "pause over the timeout",
    "stall",
    "crash",
    "crash in a change",
    "restart",
    "late start",
    "busy interface",
    "busy processor",
    "back-pressure",
    "overtaking",
    "retransmission",
    "earlier incarnation",
    "client turned away",
)

#: How one view follows another, and what comes with it.
TRANSITION_KINDS = (
    "founding",
    "failure",
    "crash of the coordinator",
    "crash during a change",
    "join",
    "rejoin",
    "leave",
    "eviction",
    "partition",
    "merge",
    "exclusion and return",
    "renewed",
    "order changed",
    "class changed",
    "state transfer",
    "donor replaced",
)

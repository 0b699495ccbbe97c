"""What happened in a run, in numbers. A fault that never occurs tests nothing, so occurrences are counted."""

import msgspec


class Counters(msgspec.Struct):
    """The counts of one run; `occurred` counts faults and view transitions by kind."""

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


#: The faults and bottlenecks that a run can meet.
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
    "crash in a view change",
    "restart",
    "late start",
    "busy interface",
    "busy processor",
    "back-pressure",
    "overtaking",
    "retransmission",
    "earlier incarnation",
    "client retry",
)

#: The faults of runs that send with qualities of service; nothing else is injected there.
SERVICE_FAULT_KINDS = ("omission", "crash", "inaccessibility")

#: How one view follows another, and what comes with it.
TRANSITION_KINDS = (
    "founding",
    "failure",
    "crash of the coordinator",
    "crash during a view change",
    "join",
    "rejoin",
    "leave",
    "eviction",
    "partition",
    "merge",
    "exclusion and return",
    "renewed",
    "order changed",
    "protocol changed",
    "state transfer",
    "donor replaced",
)

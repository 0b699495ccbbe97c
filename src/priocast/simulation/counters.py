"""What happened in a run, in numbers: a fault that never occurs tests nothing, so occurrences are counted."""

import msgspec


class Counters(msgspec.Struct):
    """One run's counts."""

    broadcasts: int = 0
    deliveries: int = 0
    turns: int = 0
    frames: int = 0
    frame_bytes: int = 0
    frames_lost: int = 0
    frames_cut: int = 0
    frames_duplicated: int = 0
    frames_reordered: int = 0
    interface_waits: int = 0
    processor_waits: int = 0
    pause_waits: int = 0
    room_waits: int = 0
    overtakings: int = 0
    retransmissions: int = 0
    link_duplicates: int = 0


#: What can hit a run, and the count that shows that it did.
FAULT_KINDS = {
    "loss": "frames_lost",
    "cut": "frames_cut",
    "duplication": "frames_duplicated",
    "reordering": "frames_reordered",
    "busy interface": "interface_waits",
    "busy processor": "processor_waits",
    "pause": "pause_waits",
    "back-pressure": "room_waits",
    "overtaking": "overtakings",
    "retransmission": "retransmissions",
}

"""How much goes into one packet and one turn: frames are cut by bytes and by what is ready, not by time."""

from collections.abc import Callable
from typing import Annotated, Protocol

import msgspec

from priocast.core.identity import NAME_LENGTH_MAX, Number
from priocast.core.message import BATCH_BYTES_CUT, Batch, Reference

FRAME_BATCHES_MAX = 1024
FRAMES_PER_TURN = 8

Batches = Annotated[tuple[Batch, ...], msgspec.Meta(min_length=1, max_length=FRAME_BATCHES_MAX)]
References = Annotated[tuple[Reference, ...], msgspec.Meta(min_length=1, max_length=FRAME_BATCHES_MAX)]
BottleneckName = Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)]
Position = Number


class BatchQueue(Protocol):
    """A queue that frames are filled from."""

    @property
    def count(self) -> int: ...

    @property
    def head_level(self) -> int: ...

    def take(self, count_max: int) -> Batch: ...


def fill_frame(
    queue: BatchQueue,
    room: Callable[[int], int],
    taken: Callable[[Batch], None],
    batches_max: int = FRAME_BATCHES_MAX,
) -> tuple[Batch, ...]:
    """Take the next batches from a queue, up to one frame, as long as there is room for their level."""
    batches: list[Batch] = []
    size = 0
    while queue.count and size < BATCH_BYTES_CUT and len(batches) < batches_max:
        count = room(queue.head_level)
        if count <= 0:
            break
        batch = queue.take(count)
        taken(batch)
        batches.append(batch)
        size += len(batch.block)
    return tuple(batches)

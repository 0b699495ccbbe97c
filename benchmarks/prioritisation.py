"""Prioritisation time: what passing through the priority queue costs a message, and through the plain queue.

The cost paper's Table 2 measures the time between a sequencer's taking a message and sending it on. Here it
is the queue's part of that, with a standing backlog, for batches of several sizes.
"""

import time

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, pack
from priocast.core.priority_queue import PriorityQueue
from priocast.core.starvation import FirstInFirstOut, Starvation, Strict

_ROUNDS = 20_000
_BACKLOG = 1_000
_UNBOUNDED = 1 << 60


def nanoseconds_per_message(starvation: Starvation, batch_size: int) -> float:
    """The mean time for which one message occupies the queue's owner, entering and leaving."""
    payloads = [bytes(64)] * batch_size
    queue = PriorityQueue(starvation, _UNBOUNDED, _UNBOUNDED)
    rounds = max(1_000, _ROUNDS // batch_size)
    batches = [_batch(number, payloads) for number in range(_BACKLOG + rounds)]
    for batch in batches[:_BACKLOG]:
        queue.put(batch, 0)
    started = time.perf_counter_ns()
    for batch in batches[_BACKLOG:]:
        queue.put(batch, 0)
        queue.take(batch_size)
    return (time.perf_counter_ns() - started) / (rounds * batch_size)


def _batch(number: int, payloads: list[bytes]) -> Batch:
    """A batch of one of four senders and eight levels that continues no other one."""
    sender = ProcessId("abcd"[number % 4])
    return pack(sender, number * 7 % 8 * 32, 2 * number * len(payloads), payloads)


def prioritisation_times(batch_sizes: tuple[int, ...]) -> dict[int, tuple[float, float]]:
    """By batch size: nanoseconds a message, plain and prioritised."""
    return {
        size: (
            min(nanoseconds_per_message(FirstInFirstOut(), size) for _ in range(3)),
            min(nanoseconds_per_message(Strict(), size) for _ in range(3)),
        )
        for size in batch_sizes
    }

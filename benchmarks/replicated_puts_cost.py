"""`python -m benchmarks.replicated_puts_cost`: the processor time of a replicated put, in one process.

Three members over TCP put into a dictionary, with some puts outstanding at each. What is printed is for all
three of them together, and for applying a put at one of them alone. It is the shortest of several rounds:
other programs make a round longer, never shorter. `PYTHONPATH=$(make compiled)` measures the compiled
version.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

import priocast
from priocast.core.events import DeliveredBatch
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.replication.commands import Command, CommandId, encode_envelope
from priocast.replication.objects.object_machine import ObjectMachine
from priocast.replication.replicated_state import ReplicatedState
from priocast.runtime.event_loop import run
from priocast.runtime.gc_freeze import freeze_gc
from priocast.testing.process_group import loopback_members

MEMBERS = 3
KEYS = 1000
VALUE = "v" * 64
OUTSTANDING = (1, 16, 256)
ROUNDS = 20
PUTS = 1536
_BATCH = 256

Store = priocast.ReplicatedDict[str, str]


def apply_us() -> float:
    """What a member needs to apply a put, from the delivered message to its outcome."""
    store, sender, number, best = Store(), ProcessId("a", 1), 0, float("inf")
    state = ReplicatedState(ObjectMachine(store))
    state.on_view(View(1, (sender,)), awaits_state=False)
    for _ in range(ROUNDS * PUTS // _BATCH):
        payloads = []
        for each in range(number, number + _BATCH):
            call = Store.set.encode_call("set", (f"key {each % KEYS}", f"{each} {VALUE}"), {})
            command = Command(CommandId("a#1", each), max(0, each - _BATCH), each, call)
            payloads.append(encode_envelope(command))
        batch = DeliveredBatch(sender, priocast.ROUTINE, number, number, payloads, b"")
        started = time.process_time()
        for index in range(_BATCH):
            state.on_message(batch, index)
        best = min(best, time.process_time() - started)
        number += _BATCH
    return 1e6 * best / _BATCH


async def put_us(outstanding: int) -> float:
    """What three members need for a put, when each has so many of them outstanding."""
    async with AsyncExitStack() as stack:
        joining = [priocast.replicate("puts", Store(), **member) for member in loopback_members(MEMBERS)]
        stores = await asyncio.gather(*map(stack.enter_async_context, joining))
        return min([await _round_us(stores, outstanding) for _ in range(ROUNDS)])


async def _round_us(stores: Sequence[Store], outstanding: int) -> float:
    count = max(PUTS // (len(stores) * outstanding), 16)

    async def put(store: Store, client: int) -> None:
        for number in range(count):
            await store.set(f"key {number % KEYS}", f"{client} {number} {VALUE}")

    started = time.process_time()
    await asyncio.gather(*(put(store, client) for store in stores for client in range(outstanding)))
    return 1e6 * (time.process_time() - started) / (count * len(stores) * outstanding)


def main() -> None:
    """Measure and print everything."""
    freeze_gc()
    say = partial(print, file=sys.stdout, flush=True)
    say(f"applying a put at one member: {apply_us():.2f} us")
    for outstanding in OUTSTANDING:
        say(f"a put at three members, {outstanding} outstanding at each: {run(put_us(outstanding)):.1f} us")


if __name__ == "__main__":
    main()

"""What the live page of a node is sent."""

import asyncio
import gc
import tracemalloc
from itertools import pairwise

import msgspec

from priocast.core.events import Delivery
from priocast.core.priority import ROUTINE, URGENT
from priocast.membership.delivery_sample import UNKNOWN_WAIT, DeliverySample
from priocast.runtime.admin.live_updates import SAMPLES_MAX, LiveNode, NodeUpdates, PageUpdate, selected
from priocast.runtime.group import Group
from support.nodes import nodes
from support.waiting import run, wait_until

WARM_UP = 1_200
"""Messages after which what a member keeps of the last ones has reached its limit."""
ROUNDS, MEASURED = 5, 500
BYTES_PER_UPDATE_MAX = 10
"""Less than any object that an update could leave behind."""


def read(update: bytes) -> LiveNode:
    [node] = msgspec.json.decode(update, type=PageUpdate).nodes
    return msgspec.json.decode(node, type=LiveNode)


def test_an_update_has_figures_deliveries_and_views() -> None:
    async def test() -> None:
        async with nodes(2, "tickets") as (node, other):
            driver = node.groups["tickets"]
            updates = NodeUpdates(node, "127.0.0.1:9401")
            updates.start()
            group = Group(driver)
            consuming = asyncio.create_task(consume(group))
            for priority in (ROUTINE, URGENT):
                await group.broadcast(b"seat", priority)
            await wait_until(lambda: driver.member.stream.position == 2)
            await asyncio.sleep(0)
            [live] = read(updates.gather()).groups
            assert {each.priority: (each.broadcast, each.delivered) for each in live.priorities} == {
                URGENT: (1, 1),
                ROUTINE: (1, 1),
            }
            assert all(sum(count for _, count in each.times) == 1 for each in live.priorities)
            assert [each.position for each in live.deliveries] == [0, 1]
            assert all(each.waited_ms > 0 for each in live.deliveries)
            assert [view.members for view in live.views] == [["a", "b"]]
            assert not read(updates.gather()).groups[0].deliveries, "each is sent once"
            await Group(other.groups["tickets"]).broadcast(b"seat", URGENT)
            await wait_until(lambda: driver.member.stream.position == 3)
            await asyncio.sleep(0)
            [of_other] = read(updates.gather()).groups[0].deliveries
            assert (of_other.sender, of_other.waited_ms) == ("b", UNKNOWN_WAIT)
            updates.stop()
            assert driver.factory.meter.recent is None
            consuming.cancel()

    async def consume(group: Group) -> None:
        async for _ in group:
            pass

    run(test)


def test_updates_leave_nothing_in_memory() -> None:
    async def test() -> None:
        async with nodes(1, "tickets") as (node,):
            updates, group = NodeUpdates(node, "127.0.0.1:9401"), Group(node.groups["tickets"])
            events = aiter(group)
            updates.start()

            async def update_often(times: int) -> int:
                """Broadcast, consume and gather; return how many bytes are allocated then."""
                for _ in range(times):
                    await group.broadcast(b"seat", URGENT)
                    while not isinstance(await anext(events), Delivery):
                        pass
                    read(updates.gather())
                gc.collect()
                return tracemalloc.get_traced_memory()[0]

            tracemalloc.start()
            try:
                await update_often(WARM_UP)
                allocated = [await update_often(MEASURED) for _ in range(ROUNDS)]
                bytes_max = MEASURED * BYTES_PER_UPDATE_MAX
                # What leaks is left by every round; a buffer that grows, or another thread, is not.
                assert min(after - before for before, after in pairwise(allocated)) < bytes_max
            finally:
                tracemalloc.stop()

    run(test)


def test_a_selection_keeps_the_most_urgent_and_spreads_the_others() -> None:
    samples = [
        DeliverySample(at, at, 1, URGENT if at % 100 == 0 else ROUTINE, "a", 0, 0)
        for at in range(8 * SAMPLES_MAX)
    ]
    found = selected(samples)
    assert len(found) <= SAMPLES_MAX
    assert [each for each in found if each.priority == URGENT] == [
        each for each in samples if each.priority == URGENT
    ]
    gaps = [b.position - a.position for a, b in pairwise(found)]
    assert max(gaps) <= 16
    assert selected(samples[:5]) == samples[:5]

"""Changing from every order to every other one in running groups, and orders that a group cannot have."""

import asyncio
from itertools import pairwise

import pytest

import priocast
from priocast.core.errors import InvalidOption
from priocast.protocols import PROTOCOLS, all_orders
from support.groups import groups, ids, reading
from support.waiting import run

ORDERS = all_orders(["sequencer-ub"])
NOT_PARTITIONABLE = [name for name, protocol in PROTOCOLS.items() if not protocol.PARTITIONABLE]


def tour() -> list[str]:
    """A walk over the orders that takes each step from one to another once."""
    steps = [ORDERS[0]]
    left = {(one, other) for one in ORDERS for other in ORDERS if one != other}
    while left:
        here = steps[-1]
        onward = [order for order in ORDERS if (here, order) in left]
        # If no step is left here, the walk continues from a remaining pair.
        steps.append(onward[0] if onward else min(left)[0])
        left.discard((here, steps[-1]))
    return steps


def test_any_order_can_be_changed_to_any_other_while_messages_flow() -> None:
    steps = tour()
    assert {(one, other) for one, other in pairwise(steps)} >= {
        (one, other) for one in ORDERS for other in ORDERS if one != other
    }

    async def walk(members: list[priocast.Group]) -> None:
        for number, order in enumerate(steps):
            if order != members[0].status().order:
                members[number % 3].change_order(order)
            for member in members:
                await member.broadcast(b"%d %s" % (number, member.me.name.encode()), priority=number % 256)
            while any(member.status().order != order for member in members):
                await asyncio.sleep(0.001)

    async def test() -> None:
        options = priocast.OrderingOptions(window=8, part_ms=1)
        # On a busy machine nobody must be evicted for being slow: an evicted member misses messages.
        membership = priocast.MembershipOptions(
            founders=3, heartbeat_ms=20, failure_ms=10_000, slow_ms=20_000
        )
        payloads = [b"%d %s" % (number, name) for number in range(len(steps)) for name in (b"a", b"b", b"c")]
        async with groups("memory", 3, order=steps[0], options=options, membership=membership) as members:
            async with reading(*members) as readers:
                await walk(members)
                for reader in readers:
                    await reader.wait_payloads(*payloads)
            assert all(event.reason.order for event in readers[0].views[1:])
            assert sorted(readers[0].payloads) == sorted(payloads)
            assert ids(readers[0].deliveries) == ids(readers[1].deliveries) == ids(readers[2].deliveries)

    run(test)


@pytest.mark.parametrize("order", NOT_PARTITIONABLE)
def test_an_order_for_primary_groups_only_is_rejected_in_a_partitionable_group(order: str) -> None:
    node = priocast.open_node("a", hub=priocast.MemoryHub(), size=1)
    for name in (order, f"time-parts/{order}"):
        with pytest.raises(InvalidOption, match="is not for partitionable groups"):
            node.join("tickets", order=name, policy="partitionable")
        node.join("tickets", order=name, policy="primary")


@pytest.mark.parametrize("order", NOT_PARTITIONABLE)
def test_a_partitionable_group_cannot_change_to_it(order: str) -> None:
    async def test() -> None:
        async with groups("memory", 1, policy="partitionable") as (member,):
            with pytest.raises(InvalidOption, match="is not for partitionable groups"):
                member.change_order(order)
            assert member.status().order == "sequencer-ub"

    run(test)


@pytest.mark.parametrize("order", ["sequencer-ub", "reorder", "reorder-locks"])
def test_an_order_can_be_changed_between_two_messages_of_a_batch(order: str) -> None:
    """The application has consumed messages that the member does not know about yet."""
    payloads = [b"%d" % number for number in range(6)]

    async def test() -> None:
        async with groups("memory", 1, order=order) as (member,):
            await member.broadcast_many(payloads)
            delivered = []
            async for event in member:
                if isinstance(event, priocast.Delivery):
                    delivered.append(event.message.payload)
                    if len(delivered) == 2:
                        member.change_order("token-ring" if member.status().order == order else order)
                if len(delivered) == len(payloads):
                    break
            assert delivered == payloads

    run(test)

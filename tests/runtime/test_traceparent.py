"""The trace context of a message: it comes with the message, and without one nothing changes."""

import msgspec
import pytest

import priocast
from priocast.core.message import TO_ALL, Scope
from priocast.runtime.group import Group
from support.nodes import nodes
from support.waiting import run

CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_every_member_gets_the_context_with_the_message() -> None:
    async def test() -> None:
        async with nodes(2, "tickets") as made:
            groups = [Group(node.groups["tickets"]) for node in made]
            await groups[0].broadcast(b"plain")
            await groups[0].broadcast(b"traced", traceparent=CONTEXT)
            groups[0].broadcast_nowait(b"both", to=["a", "b"], safe=True, traceparent=CONTEXT)
            await groups[0].broadcast_many([b"many"] * 2, traceparent=CONTEXT)
            contexts = ["", CONTEXT, CONTEXT, CONTEXT, CONTEXT]
            found = []
            async for event in groups[1]:
                if isinstance(event, priocast.Delivery):
                    found.append(event.message.traceparent)
                    if len(found) == len(contexts):
                        break
            assert found == contexts
            batches = []
            async for batch in groups[0].batches():
                batches += [batch.traceparent] * len(batch.payloads)
                if len(batches) == len(contexts):
                    break
            assert batches == contexts

    run(test)


@pytest.mark.parametrize(
    "context",
    [
        "",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        CONTEXT.upper(),
        "ff" + CONTEXT[2:],
        CONTEXT + "-more",
        "00-" + "0" * 32 + "-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-" + "0" * 16 + "-01",
        7,
    ],
)
def test_what_is_not_a_context_is_rejected(context: str) -> None:
    async def test() -> None:
        async with nodes(1, "tickets") as (node,):
            group = Group(node.groups["tickets"])
            with pytest.raises(priocast.InvalidInput, match="traceparent must be"):
                await group.broadcast(b"seat", traceparent=context)
            assert group.backlog == 0

    run(test)


def test_an_unused_context_costs_one_byte_of_a_batch_and_may_be_missing() -> None:
    before = msgspec.msgpack.encode([TO_ALL.safe, TO_ALL.to, TO_ALL.client, TO_ALL.request])
    assert len(msgspec.msgpack.encode(TO_ALL)) == len(before) + 1
    assert msgspec.msgpack.decode(before, type=Scope) == TO_ALL

"""A node in two groups: the certificate of one group has no effect in the other, and ends nothing.

Real nodes over TLS. Both groups have a member b, which are two processes.
"""

import asyncio
from pathlib import Path

import priocast
from network.intruders import data, hello, impostor
from priocast.core.identity import ProcessId
from priocast.core.view import ViewId
from priocast.core.view_reason import ViewReason
from priocast.membership.datagrams import frame_of
from priocast.membership.packets import EvictionNotice, Heartbeat
from priocast.network.address import parse_address
from priocast.network.keys import make_member_certificate
from priocast.network.security import TlsSecurity
from support.groups import quick
from support.networks import NetworkFactory, free_address
from support.waiting import run, wait_until

OTHER_GROUP = "certificate is not for this group"


def certificate(factory: NetworkFactory, directory: Path, name: str, *groups: str) -> TlsSecurity:
    inside = directory / f"{name}-{'-'.join(groups)}"
    inside.mkdir()
    return make_member_certificate(inside, factory.authority, name, list(groups))


async def delivers(sender: priocast.Group, receiver: priocast.Group, payload: bytes) -> None:
    await sender.broadcast(payload)
    async for event in receiver:
        if isinstance(event, priocast.Delivery) and event.message.payload == payload:
            return


def lies(to: ProcessId) -> list[bytes]:
    """What could end the member of `tickets`, if b of `telemetry` could say it there."""
    process = ProcessId("b", 1 << 61)
    return [
        frame_of(EvictionNotice(to, ViewId(99, process), ViewReason())).body,
        frame_of(Heartbeat(0, None, (), 0, (), (), leaving=True)).body,
        b"\xc1",
    ]


def test_a_certificate_of_one_group_says_hello_in_the_other(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("tls", tmp_path)
        of_a = certificate(factory, tmp_path, "a", "tickets", "telemetry")
        of_b = certificate(factory, tmp_path, "b", "tickets")
        contexts = certificate(factory, tmp_path, "b", "telemetry").contexts()
        at_a, at_b = str(free_address()), str(free_address())
        joining = priocast.join(
            "tickets", member="b", listen=at_b, peers=[at_a], tls=of_b, membership=quick(2)
        )
        async with priocast.open_node("a", listen=at_a, peers=[at_b], tls=of_a) as node:
            tickets_joining = node.join("tickets", membership=quick(2))
            telemetry_joining = node.join("telemetry", membership=quick(1))
            tickets, tickets_b = await asyncio.gather(tickets_joining.__aenter__(), joining.__aenter__())
            async with telemetry_joining as telemetry:
                await delivers(tickets_b, tickets, b"before")
                address, me = parse_address(at_a), node.groups["tickets"].member.me
                rejections = node.network.rejections
                async with impostor("b", address, contexts) as intruder:
                    for body in 2 * lies(me):
                        before = rejections[OTHER_GROUP]
                        await intruder.say(data("tickets", "b", body))
                        await wait_until(lambda: rejections[OTHER_GROUP] > before)  # noqa: B023 - awaited
                        reader, writer = await asyncio.open_connection(*address, ssl=contexts[1])
                        writer.write(hello("b"))
                        assert await reader.read(2000)
                        writer.close()
                    await delivers(tickets_b, tickets, b"during")
                    await delivers(telemetry, telemetry, b"alone")
                await delivers(tickets, tickets_b, b"after")
                assert node.groups["tickets"].factory.made == node.groups["telemetry"].factory.made == 1
                assert [each.name for each in tickets.view.members] == ["a", "b"]
                await joining.__aexit__(None, None, None)
                await tickets_joining.__aexit__(None, None, None)

    run(test)

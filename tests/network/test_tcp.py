"""What only a real network has: strangers, broken connections, and peers that are not what was expected."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

import priocast
from priocast.core.errors import InvalidAddress, JoinRefused, PeerRestarted
from priocast.core.identity import ProcessId
from priocast.network.codec import FrameWriter, Kind
from priocast.network.tcp import TcpNetwork
from priocast.runtime.group import Joining
from priocast.study.processes import free_ports
from support.groups import groups, ids, run, take


def pair(ports: list[int], **second: object) -> list[Joining]:
    """Two members that expect each other; `second` says how the second one differs."""
    one, other = (f"127.0.0.1:{port}" for port in ports)
    usual: dict[str, object] = {
        "group": "test",
        "member": "b",
        "listen": other,
        "peers": [one],
        "start_seconds": 1,
    }
    return [
        priocast.join("test", member="a", listen=one, peers=[other], start_seconds=1),
        priocast.join(**(usual | second)),  # type: ignore[arg-type]
    ]


async def outcomes(joinings: list[Joining]) -> list[str]:
    """What each of them says when all try to join at once."""
    results = await asyncio.gather(*(each.__aenter__() for each in joinings), return_exceptions=True)
    for joining, result in zip(joinings, results, strict=True):
        if not isinstance(result, BaseException):
            await joining.__aexit__(None, None, None)
    return [f"{type(result).__name__}: {result}" for result in results]


@pytest.mark.parametrize(
    ("difference", "reason"),
    [
        ({"group": "other"}, "another group"),
        ({"peers": ["127.0.0.1:9", "127.0.0.1:10"]}, "another number of members"),
        ({"prioritised": False}, "another options of the order"),
    ],
)
def test_members_that_do_not_agree_refuse_each_other_and_say_why(
    difference: dict[str, object], reason: str
) -> None:
    async def test() -> None:
        said = await outcomes(pair(free_ports(2), **difference))
        assert said[0].startswith("JoinRefused")
        assert reason in said[0]

    run(test)


def test_two_members_of_one_name_are_told_so() -> None:
    async def test() -> None:
        said = await outcomes(pair(free_ports(2), member="a", incarnation=5))
        assert any("give each member" in each for each in said), said

    run(test)


def test_a_peer_that_never_appears_ends_the_wait_with_advice() -> None:
    async def test() -> None:
        one, _ = pair(free_ports(2))
        with pytest.raises(priocast.DeadlineExceeded, match=r"1 of the other members.*addresses right"):
            await one.__aenter__()

    run(test)


def test_a_port_in_use_is_named() -> None:
    async def test() -> None:
        ports = free_ports(2)
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", ports[0])
        one, _ = pair(ports)
        with pytest.raises(InvalidAddress, match=f"cannot listen on 127.0.0.1:{ports[0]}"):
            await one.__aenter__()
        server.close()

    run(test)


def other_version(kind: Kind, version: int) -> bytes:
    frame = bytearray(FrameWriter("test", ProcessId("x", 1)).frame(kind))
    frame[2] = version
    return bytes(frame)


@pytest.mark.parametrize(
    ("answer", "error"),
    [(b"HTTP/1.1 400 Bad Request\r\n" * 4, "check the port"), (other_version(Kind.WELCOME, 2), "version 2")],
)
def test_a_server_that_is_not_priocast_or_another_version_is_recognised(answer: bytes, error: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def test() -> None:
        ports = free_ports(2)
        server = await asyncio.start_server(serve, "127.0.0.1", ports[1])
        one, _ = pair(ports)
        with pytest.raises(priocast.PeerFault, match=error):
            await one.__aenter__()
        server.close()

    run(test)


async def call(port: int, data: bytes) -> bytes:
    """Connect as a stranger, say something, and return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    answer = b""
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(1):
            answer = await reader.read(-1)
    writer.close()
    return answer


def network_of(group: priocast.Group) -> TcpNetwork:
    network = group._node._network
    assert isinstance(network, TcpNetwork)
    return network


def test_strangers_are_refused_and_counted_and_the_group_goes_on() -> None:
    async def test() -> None:
        async with groups("tcp", 3) as members:
            network = network_of(members[0])
            port = network._listen.port
            stranger = FrameWriter("test", ProcessId("x", 1))
            assert b"check the port" in await call(port, b"GET / HTTP/1.0\r\n\r\n" + bytes(100))
            assert b"version 3" in await call(port, other_version(Kind.HELLO, 3))
            assert b"introduce itself first" in await call(port, stranger.frame(Kind.DATA, b"x"))
            assert b"cannot be read" in await call(port, stranger.frame(Kind.HELLO, b"\xc1"))
            assert await call(port, stranger.frame(Kind.HELLO, b"truncated")[:20]) == b""
            assert len(network.refused) == 4
            await members[1].broadcast(b"still here")
            seen = await asyncio.gather(*(take(member, 1) for member in members))
            assert {ids(each)[0] for each in seen} == {"b#1/96/0"}

    run(test)


@contextlib.asynccontextmanager
async def proxy(target: int) -> AsyncIterator[tuple[int, list[asyncio.StreamWriter]]]:
    """A port that leads to another one, and the connections through it, to be cut."""
    connections: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while data := await reader.read(4096):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.close()
            return
        connections.extend((writer, onward_writer))
        await asyncio.gather(pump(reader, onward_writer), pump(onward_reader, writer))

    [port] = free_ports(1)
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield port, connections
    finally:
        server.close()


def test_connections_that_break_lose_repeat_and_reorder_nothing() -> None:
    async def test() -> None:
        ports = free_ports(2)
        async with proxy(ports[0]) as (port, connections):
            one, other = pair(ports, peers=[f"127.0.0.1:{port}"])
            members = await asyncio.gather(one.__aenter__(), other.__aenter__())

            async def send(group: priocast.Group) -> None:
                for number in range(3000):
                    await group.broadcast(b"%d" % number, priority=number % 3 * 90)
                    if number % 100 == 0:
                        await asyncio.sleep(0.002)

            async def cut() -> None:
                for _ in range(8):
                    await asyncio.sleep(0.02)
                    for connection in connections:
                        connection.transport.abort()
                    connections.clear()

            tasks = [asyncio.create_task(work) for work in (send(members[0]), send(members[1]), cut())]
            seen = await asyncio.gather(*(take(member, 6000) for member in members))
            await asyncio.gather(*tasks)
            assert ids(seen[0]) == ids(seen[1])
            assert len(set(ids(seen[0]))) == 6000
            links = [link for member in members for link in member._node.member.links.values()]
            assert sum(link.retransmissions for link in links) > 0
            await asyncio.gather(one.__aexit__(None, None, None), other.__aexit__(None, None, None))

    run(test, timeout_seconds=60)


def test_a_member_that_restarts_is_not_taken_for_the_old_one() -> None:
    async def test() -> None:
        ports = free_ports(2)
        one, other = pair(ports, incarnation=1)
        group, _ = await asyncio.gather(one.__aenter__(), other.__aenter__())
        port = network_of(group)._listen.port
        imposter = priocast.join(
            "test",
            member="b",
            listen=f"127.0.0.1:{free_ports(1)[0]}",
            peers=[f"127.0.0.1:{port}"],
            incarnation=2,
            start_seconds=1,
        )
        with pytest.raises((JoinRefused, PeerRestarted), match="another process than b#1"):
            await imposter.__aenter__()
        await asyncio.gather(one.__aexit__(None, None, None), other.__aexit__(None, None, None))

    run(test)

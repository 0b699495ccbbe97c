"""TCP connections: they break, reach the wrong process, or one that does not read."""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from priocast.core.errors import InvalidAddress, UnusableKey
from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.network.address import Address
from priocast.network.codec import FrameKind, FrameReader, FrameWriter
from priocast.network.tcp import TcpNetwork
from priocast.network.tcp_connection import Introduction, encode_introduction
from support.networks import LinkEnd, NetworkFactory, Recorder, free_address, open_all, started
from support.waiting import run, wait_until

HERE = "127.0.0.1"


def test_a_port_in_use_is_named() -> None:
    async def test() -> None:
        address = free_address()
        server = await asyncio.start_server(lambda *_: None, *address)
        network = TcpNetwork("a", address, [])
        with pytest.raises(InvalidAddress, match=f"cannot listen on {address}: .*free port"):
            await network.start()
        await network.close()
        server.close()

    run(test)


def test_port_0_chooses_a_free_port(tmp_path: Path) -> None:
    async def test() -> None:
        one = TcpNetwork("a", Address(HERE, 0), [])
        async with started(one):
            assert one.address.port
            other = TcpNetwork("b", Address("0.0.0.0", 0), [one.address])  # noqa: S104 - to be learnt
            async with started(other):
                [recorder] = open_all([one], "a")
                await recorder.wait_reaches("b")

    run(test)


def test_a_peer_is_dialled_at_its_advertised_address() -> None:
    async def test() -> None:
        one = TcpNetwork("a", free_address(), [])
        address = free_address()
        async with proxy(address) as (way, _), started(one):
            other = TcpNetwork("b", address, [one.address], advertise=way)
            async with started(other):
                [recorder] = open_all([one], "a")
                await recorder.wait_reaches("b")
                assert [each.address for each in one.dialled.values()] == [way]

    run(test)


def test_our_own_address_is_ignored() -> None:
    async def test() -> None:
        address = free_address()
        network = TcpNetwork("a", Address("0.0.0.0", address.port), [address])  # noqa: S104 - all of ours
        plain = free_address()
        async with started(network, TcpNetwork("b", plain, [plain])):
            await wait_until(lambda: not network._diallers._diallers)
            assert not network.rejections
            assert not network.dialled

    run(test)


def test_a_process_that_moved_is_found_at_its_new_address() -> None:
    async def test() -> None:
        stays = TcpNetwork("a", free_address(), [])
        async with started(stays):
            [recorder] = open_all([stays], "a")
            for _ in range(3):
                recorder.reached.clear()
                async with started(TcpNetwork("b", free_address(), [stays.address])):
                    await recorder.wait_reaches("b")
            assert not stays.rejections

    run(test)


def test_a_learnt_address_that_does_not_answer_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("priocast.network.tcp_dialler._LEARNT_SECONDS", 0.1)

    async def test() -> None:
        nobody, namesake = free_address(), TcpNetwork("a", free_address(), [])
        network = TcpNetwork("a", free_address(), [nobody])
        async with started(network, namesake):
            learnt = [free_address(), namesake.address]
            for address in learnt:
                network._diallers.add(address, learnt=True)
            assert list(network._diallers._diallers) == [nobody, *learnt]
            await wait_until(lambda: list(network._diallers._diallers) == [nobody])

    run(test)


def test_running_out_of_descriptors_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        loop, failures = asyncio.get_running_loop(), 2
        accept = loop.sock_accept

        async def failing(listening: socket.socket) -> tuple[socket.socket, object]:
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise OSError(errno.EMFILE, "too many open files")
            return await accept(listening)

        monkeypatch.setattr(loop, "sock_accept", failing)
        one = TcpNetwork("a", free_address(), [])
        other = TcpNetwork("b", free_address(), [one.address])
        async with started(one, other):
            await wait_until(lambda: one.dialled)
            assert one.rejections + other.rejections == {"no free file descriptors": 2}

    run(test)


def test_two_addresses_of_one_process_are_counted_and_one_is_used() -> None:
    async def test() -> None:
        other = TcpNetwork("b", free_address(), [])
        async with proxy(other._listen) as (way, _), started(other):
            one = TcpNetwork("a", free_address(), [other.address, way])
            async with started(one):
                [recorder] = open_all([one], "a")
                await wait_until(lambda: one.rejections["two addresses of one process"] >= 2)
                assert recorder.reached == ["b"]

    run(test)


def test_two_processes_with_one_name_reject_each_other() -> None:
    async def test() -> None:
        first = TcpNetwork("a", free_address(), [])
        async with started(first):
            second = TcpNetwork("a", free_address(), [first.address])
            async with started(second):
                await wait_until(lambda: first.rejections["a peer with our own name"])
                await wait_until(lambda: second.rejections["a peer rejected us"])
                assert not first.dialled
                assert not second.dialled

    run(test)


def test_a_configured_address_is_preferred_to_a_learnt_one() -> None:
    async def test() -> None:
        address = free_address()
        async with proxy(address) as (way, connections):
            one = TcpNetwork("a", free_address(), [way])
            other = TcpNetwork("b", address, [one.address])
            async with started(one, other):

                def addresses() -> list[Address]:
                    return [each.address for each in one.dialled.values()]

                await wait_until(lambda: addresses() == [way])
                for connection in connections:
                    connection.transport.abort()
                await wait_until(lambda: len(connections) >= 4 and one.dialled)
                await wait_until(lambda: addresses() == list(one._diallers._diallers) == [way])
                assert one.unreached() == [], "the learnt address was dialled for a while, and given up"

    run(test)


@contextlib.asynccontextmanager
async def proxy(target: Address) -> AsyncIterator[tuple[Address, list[asyncio.StreamWriter]]]:
    """A proxy for another address, whose connections can be cut."""
    connections: list[asyncio.StreamWriter] = []
    tasks: set[asyncio.Task[None] | None] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while data := await reader.read(4096):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            onward_reader, onward_writer = await asyncio.open_connection(*target)
        except OSError:
            writer.close()
            return
        connections.extend((writer, onward_writer))
        await asyncio.gather(pump(reader, onward_writer), pump(onward_reader, writer))

    address = free_address()
    server = await asyncio.start_server(serve, *address)
    try:
        yield address, connections
    finally:
        server.close()
        for connection in connections:
            connection.transport.abort()
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_links_over_breaking_connections_lose_duplicate_and_reorder_nothing(loop: str) -> None:
    async def test() -> None:
        address = free_address()
        async with proxy(address) as (way, connections):
            one = TcpNetwork("a", free_address(), [way])
            other = TcpNetwork("b", address, [], advertise=way)
            async with started(one, other):
                ends = [LinkEnd(one, "a", "b"), LinkEnd(other, "b", "a")]
                await ends[0].wait_reaches("b")
                bodies = [b"%d" % number * 100 for number in range(600)]
                for number, body in enumerate(bodies):
                    ends[0].send(body)
                    if number % 100 == 50:
                        for connection in connections:
                            connection.transport.abort()
                        connections.clear()
                        await asyncio.sleep(0.01)
                await wait_until(lambda: len(ends[1].arrived) == len(bodies))
                assert ends[1].arrived == bodies
                assert ends[0].reached.count("b") > 1
                for end in ends:
                    end.close()

    run(test, loop=loop)


@contextlib.asynccontextmanager
async def sleeper(name: str) -> AsyncIterator[Address]:
    """A peer that welcomes every connection, and then reads nothing."""
    welcome = encode_introduction(Introduction(name, HERE, 1, bytes(8)))
    writers = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        data = await reader.read(2000)
        frames.free()[: len(data)] = data
        assert frames.read(len(data))[0].kind is FrameKind.HELLO
        writer.write(FrameWriter("", ProcessId(name, 0)).frame(FrameKind.WELCOME, welcome))
        cast("asyncio.ReadTransport", writer.transport).pause_reading()
        writers.append(writer)

    address = free_address()
    server = await asyncio.start_server(serve, *address)
    try:
        yield address
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_buffer_for_a_peer_that_does_not_read_is_bounded(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("priocast.network.tcp.CLOSE_SECONDS", 0.2)

    async def test() -> None:
        async with sleeper("b") as address:
            network = TcpNetwork("a", free_address(), [address])
            async with started(network):
                recorder = Recorder()
                port = network.open("test", ProcessId("a"), recorder)
                await recorder.wait_reaches("b")
                body = bytes(1_000_000)
                for _ in range(40):
                    port.send("b", [Frame(1, 1, 0, 0, body)])
                    await asyncio.sleep(0)
                transport = next(iter(network.dialled.values())).transport
                assert 0 < transport.get_write_buffer_size() <= 10_000_000
                assert network.rejections["a peer does not read"] >= 25
            assert not network.connections, "closing does not wait for it forever"

    run(test, loop=loop)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n" * 4, "not Priocast"),
        (FrameWriter("", ProcessId("x", 0)).frame(FrameKind.DATA), "unexpected frame"),
        (FrameWriter("", ProcessId("x", 0)).frame(FrameKind.WELCOME, b"\xc1"), "malformed content"),
        (b"", "introduction timed out"),
    ],
    ids=["http", "data", "nonsense", "silence"],
)
def test_a_server_with_an_unexpected_reply_is_counted_and_dialled_again(
    answer: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not answer:
        monkeypatch.setattr("priocast.network.tcp_dialler.HANDSHAKE_SECONDS", 0.1)
    writers = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(answer)
        await reader.read()
        writer.close()

    async def test() -> None:
        address = free_address()
        server = await asyncio.start_server(serve, *address)
        network = TcpNetwork("a", free_address(), [address])
        async with started(network):
            await wait_until(lambda: network.rejections[reason] >= 2)
            assert set(network.rejections) == {reason}
        server.close()
        for writer in writers:
            writer.close()

    run(test)


def test_a_certificate_must_include_the_opened_group(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("tls", tmp_path)
        network = factory.network("a")
        with pytest.raises(UnusableKey, match=r"does not include group .third."):
            network.open("third", ProcessId("a"), Recorder())
        with pytest.raises(UnusableKey, match="is not a certificate of b"):
            TcpNetwork("b", free_address(), [], security=factory.certificate("a"))

    run(test)


def test_a_burst_of_rejections_is_logged_once_with_fields(caplog: pytest.LogCaptureFixture) -> None:
    async def reject_five() -> None:
        network = TcpNetwork("a", free_address(), [])
        async with started(network):
            for _ in range(5):
                _, writer = await asyncio.open_connection(*network.address)
                writer.write(bytes(64))
                writer.close()
            await wait_until(lambda: network.rejections["not Priocast"] == 5)

    with caplog.at_level(logging.INFO, logger="priocast.network"):
        run(reject_five)
    records = [record.__dict__ for record in caplog.records]
    assert [record["count"] for record in records] == [1], "a burst is logged once"
    assert records[0]["reason"] == "not Priocast"
    assert records[0]["member"] == "a"
    assert records[0]["address"] == HERE

"""Peers are identified by name and group: a process of another group may have the same name."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from network.intruders import call, hello, impostor
from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.network.interface import Port
from priocast.network.keys import make_member_certificate
from priocast.network.security import TlsSecurity
from priocast.network.tcp import TcpNetwork
from support.networks import NetworkFactory, Recorder, free_address, started
from support.waiting import run, wait_until


@pytest.fixture
def factory(tmp_path: Path) -> NetworkFactory:
    return NetworkFactory("tls", tmp_path)


def certificate(factory: NetworkFactory, directory: Path, name: str, *groups: str) -> TlsSecurity:
    inside = directory / "-".join(groups)
    inside.mkdir(exist_ok=True)
    return make_member_certificate(inside, factory.authority, name, list(groups))


async def exchange(one: Port, other: Port, recorders: tuple[Recorder, Recorder], word: bytes) -> None:
    """Send a word both ways until it has arrived."""
    names = one.process.name, other.process.name  # type: ignore[attr-defined]
    for recorder, peer in zip(recorders, reversed(names), strict=True):
        await recorder.wait_reaches(peer)
    for port, recorder, peer in zip((one, other), reversed(recorders), reversed(names), strict=True):
        while word not in recorder.bodies():
            port.send(peer, [Frame(0, 0, 0, 0, word)])
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("intruder_first", [True, False])
def test_a_certificate_of_another_group_cannot_take_the_place_of_a_member(
    intruder_first: bool, factory: NetworkFactory, tmp_path: Path
) -> None:
    async def test() -> None:
        tls = {name: certificate(factory, tmp_path, name, "tickets") for name in "ab"}
        other = certificate(factory, tmp_path, "b", "telemetry").contexts()[1]
        a = TcpNetwork("a", free_address(), [], security=tls["a"])
        recorders = Recorder(), Recorder()
        async with started(a), AsyncExitStack() as stack:
            port = a.open("tickets", ProcessId("a"), recorders[0])
            if intruder_first:
                for _ in range(6):
                    answer = await call(a.address, hello("b", free_address()), context=other)
                    assert b"certificate is not for this group" in answer
                assert not recorders[0].reached
            b = TcpNetwork("b", free_address(), [a.address], security=tls["b"])
            await stack.enter_async_context(started(b))
            ports = port, b.open("tickets", ProcessId("b"), recorders[1])
            await exchange(*ports, recorders, b"first")
            for _ in range(6):
                await call(a.address, hello("b", free_address()), context=other)
            await exchange(*ports, recorders, b"second")
            assert recorders[0].reached == ["b"], "its connection stayed"
            assert set(a.rejections) == {"certificate is not for this group"}
            assert not b.rejections

    run(test)


@pytest.mark.parametrize("first", ["tickets", "telemetry"])
def test_a_process_in_two_groups_whose_members_have_the_same_name(
    first: str, factory: NetworkFactory, tmp_path: Path
) -> None:
    async def test() -> None:
        a = TcpNetwork(
            "a", free_address(), [], security=certificate(factory, tmp_path, "a", "tickets", "telemetry")
        )
        at_a = {group: Recorder() for group in ("tickets", "telemetry")}
        async with started(a), AsyncExitStack() as stack:
            ports = {group: a.open(group, ProcessId("a"), at_a[group]) for group in at_a}
            others: dict[str, TcpNetwork] = {}
            for group in sorted(at_a, key=lambda each: each != first):
                security = certificate(factory, tmp_path, "b", group)
                others[group] = TcpNetwork("b", free_address(), [a.address], security=security)
                await stack.enter_async_context(started(others[group]))
                recorder = Recorder()
                port = others[group].open(group, ProcessId("b"), recorder)
                await exchange(ports[group], port, (at_a[group], recorder), group.encode())
                assert set(recorder.bodies()) == {group.encode()}
            for group, recorder in at_a.items():
                assert set(recorder.bodies()) == {group.encode()}, "each from its own group"
                assert recorder.reached == ["b"]
            assert not a.rejections
            await others[first].close()
            await wait_until(lambda: len(a.dialled) == 1)
            [left] = [group for group in at_a if group != first]
            before = len(at_a[left].bodies())
            others[left].ports.all()[0].send("a", [Frame(0, 0, 0, 0, b"still here")])
            await at_a[left].wait_received(before + 1)

    run(test)


def test_many_connections_of_a_namesake_close_none_of_the_members(
    factory: NetworkFactory, tmp_path: Path
) -> None:
    async def test() -> None:
        both = certificate(factory, tmp_path, "a", "tickets", "telemetry")
        a = TcpNetwork("a", free_address(), [], security=both)
        b = TcpNetwork(
            "b", free_address(), [a.address], security=certificate(factory, tmp_path, "b", "tickets")
        )
        contexts = certificate(factory, tmp_path, "b", "telemetry").contexts()
        recorders = Recorder(), Recorder()
        async with started(a, b), AsyncExitStack() as stack:
            ports = (
                a.open("tickets", ProcessId("a"), recorders[0]),
                b.open("tickets", ProcessId("b"), recorders[1]),
            )
            a.open("telemetry", ProcessId("a"), Recorder())
            await exchange(*ports, recorders, b"first")
            [accepted] = [each for each in a._accepted() if each.name == "b"]
            await stack.enter_async_context(impostor("b", a.address, contexts))
            streams = [await asyncio.open_connection(*a.address, ssl=contexts[1]) for _ in range(6)]
            for reader, writer in streams:
                stack.callback(writer.close)
                writer.write(hello("b"))
                assert await reader.read(2000)
            await wait_until(lambda: a.rejections["too many connections"] >= 3)
            assert accepted in a.connections
            await exchange(*ports, recorders, b"second")
            assert recorders[0].reached == ["b"]

    run(test)

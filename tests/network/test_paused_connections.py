"""Connections that are not read, because their peer cannot be reached, do not outlive it."""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from network.intruders import hello
from priocast.network.tcp import TcpNetwork
from support.networks import NetworkFactory, started
from support.waiting import run, wait_until

COUNT = 20
SLACK = 2  # what an event loop opens for itself, once


def descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def reaches(network: TcpNetwork, name: str) -> bool:
    return any(identity.name == name for identity in network.dialled)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_connections_whose_peer_ended_before_it_was_admitted_are_freed(
    kind: str, loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory = NetworkFactory(kind, tmp_path)
    monkeypatch.setattr("priocast.network.tcp_listener.HANDSHAKE_SECONDS", 0.5)
    monkeypatch.setattr("priocast.network.tcp_connection.CLOSE_SECONDS", 0.2)

    async def test() -> None:
        network = factory.network("b")
        assert isinstance(network, TcpNetwork)
        context = factory.certificate("c").contexts()[1] if kind == "tls" else None
        async with started(network):
            before = descriptors()
            for _ in range(COUNT):
                reader, writer = await asyncio.open_connection(*factory.address("b"), ssl=context)
                writer.write(hello("c"))
                with suppress(OSError):
                    await reader.read(2000)
                writer.transport.abort()
            await wait_until(lambda: not network.connections)
            await wait_until(lambda: descriptors() <= before + SLACK)

    run(test, loop=loop)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_connections_of_a_process_that_is_gone_are_freed(
    kind: str, loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory = NetworkFactory(kind, tmp_path)
    monkeypatch.setattr("priocast.network.tcp_connection.PAUSED_SECONDS", 0.3)

    async def test() -> None:
        stays = factory.network("b")
        assert isinstance(stays, TcpNetwork)
        async with started(stays):
            before = descriptors()
            for _ in range(COUNT // 4):
                goes = factory.network("c", "b")
                assert isinstance(goes, TcpNetwork)
                async with started(goes):
                    await wait_until(partial(reaches, stays, "c"))
                    await wait_until(partial(reaches, goes, "b"))
                    for connection in list(goes._accepted()):  # b can no longer send: it stops reading
                        connection.transport.abort()
                    await goes._listener.close()
                await wait_until(lambda: not reaches(stays, "c"))
            await wait_until(lambda: not stays.connections)
            await wait_until(lambda: descriptors() <= before + SLACK)

    run(test, loop=loop)

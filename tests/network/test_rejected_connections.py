"""A rejected connection leaves nothing behind, even before the garbage collector runs.

With TLS a connection has 250 kB of buffers, and strangers decide how many are rejected between two runs of
the collector.
"""

import asyncio
import gc
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from network.intruders import hello, honest_pair
from priocast.network.address import Address
from priocast.network.keys import make_authority, make_member_certificate
from priocast.network.tcp_connection import AcceptedConnection
from support.networks import NetworkFactory
from support.waiting import PATIENCE_SECONDS, run, wait_until

STRANGERS = 20


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def context_of(secure: NetworkFactory, case: str, directory: Path) -> ssl.SSLContext:
    """What a stranger calls with: no certificate, that of another authority, or that of another member."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if case == "another authority":
        (directory / "other").mkdir()
        other = make_authority(directory / "other")
        of = make_member_certificate(directory / "other", other, "c", ["test"])
        context.load_cert_chain(of.certificate, of.key)
    elif case == "another member":
        of = secure.certificate("c")
        context.load_cert_chain(of.certificate, of.key)
    return context


def call(address: Address, talk: Callable[[socket.socket], object]) -> None:
    with socket.create_connection(address, PATIENCE_SECONDS) as stranger, suppress(OSError):
        talk(stranger)


def talks(case: str, context: ssl.SSLContext) -> Callable[[socket.socket], object]:
    """What a stranger does until it is rejected."""

    def in_tls(stranger: socket.socket) -> None:
        with context.wrap_socket(stranger) as secured:
            secured.sendall(hello("b"))
            while secured.recv(1000):
                pass

    def hang_up(stranger: socket.socket) -> None:
        stranger.sendall(b"\x16\x03\x01")

    return hang_up if case == "hangs up" else in_tls


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("case", ["hangs up", "no certificate", "another authority", "another member"])
def test_a_rejected_stranger_leaves_nothing_behind(case: str, loop: str, tmp_path: Path) -> None:
    secure = NetworkFactory("tls", tmp_path)
    talk = talks(case, context_of(secure, case, tmp_path))

    async def test() -> None:
        async with honest_pair(secure) as pair:
            kept = accepted()
            for _ in range(STRANGERS):
                await asyncio.to_thread(call, secure.address("b"), talk)
            await wait_until(lambda: pair.b.rejections.total() >= STRANGERS)
            await wait_until(lambda: accepted() <= kept, lambda: f"{accepted() - kept} connections are left")
            await pair.exchange()
            assert accepted() <= kept

    run(test, loop)


def accepted() -> int:
    """How many accepted connections exist, including unreachable ones that only the collector would free."""
    return sum(type(each) is AcceptedConnection for each in gc.get_objects())

"""Peers by a name: all its addresses are dialled, also those that it gets later."""

import asyncio
import socket
from collections.abc import Callable

import pytest

import priocast
from priocast.network.address import Address
from priocast.network.discovery import Discovery, DnsName, is_dns_name, parse_dns_name, resolve_all
from priocast.network.tcp import TcpNetwork
from priocast.testing.addresses import free_addresses
from support.waiting import run

NAME = DnsName("members.test", 7401)


class Resolver:
    """The addresses that a name has now, as the test decides."""

    def __init__(self, *addresses: Address) -> None:
        self.addresses = list(addresses)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> list[Address]:
        self.asked.append((host, port))
        return list(self.addresses)


def test_a_name_is_parsed() -> None:
    assert is_dns_name("dns:members:7401")
    assert not is_dns_name("members:7401")
    assert parse_dns_name("dns:members.local:7401") == DnsName("members.local", 7401)
    assert str(DnsName("members.local", 7401)) == "dns:members.local:7401"


@pytest.mark.parametrize(
    "text", ["dns:", "dns:members", "dns::7401", "dns:members:port", "dns:members:70000"]
)
def test_what_is_no_name_is_rejected(text: str) -> None:
    with pytest.raises(priocast.InvalidAddress, match="write dns:name:port"):
        parse_dns_name(text)


def test_a_name_is_resolved_to_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        answers = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 7401)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.2", 7401)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fd00::1", 7401, 0, 0)),
        ]
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda *given, **_: answers if given[0] == "m" else _fail()
        )
        assert await resolve_all("m", 7401) == [
            Address("10.0.0.1", 7401),
            Address("10.0.0.2", 7401),
            Address("fd00::1", 7401),
        ]
        assert await resolve_all("unknown", 7401) == []

    asyncio.run(test())


def _fail() -> None:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_changes_are_told_once() -> None:
    async def test() -> None:
        one, two = Address("10.0.0.1", 7401), Address("10.0.0.2", 7401)
        resolver = Resolver()
        told: list[list[Address]] = []
        running = asyncio.create_task(Discovery(NAME, resolver).run(told.append))
        try:
            await _until(lambda: told == [[]])
            resolver.addresses = [two, one, two]
            await _until(lambda: told == [[], [one, two]])
            asked = len(resolver.asked)
            await _until(lambda: len(resolver.asked) >= asked + 2)
            assert told == [[], [one, two]]
            assert set(resolver.asked) == {NAME}
        finally:
            running.cancel()

    run(test)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def test_members_find_each_other_by_a_name_that_gets_their_addresses_one_by_one() -> None:
    async def test() -> None:
        addresses = free_addresses(3)
        resolver = Resolver()

        async def member(name: str, address: Address) -> list[str]:
            network = TcpNetwork(name, address, [], discovery=Discovery(NAME, resolver))
            seen: list[str] = []
            async with priocast.join("g", member=name, network=network, size=3) as group:
                await group.broadcast(name.encode())
                async for event in group:
                    if isinstance(event, priocast.Delivery):
                        seen.append(event.message.payload.decode())
                        if len(seen) == 3:
                            break
            return seen

        members = [asyncio.create_task(member(*each)) for each in zip("abc", addresses, strict=True)]
        for address in addresses:
            await asyncio.sleep(0.1)
            resolver.addresses.append(address)
        seen = await asyncio.gather(*members)
        assert seen[0] == seen[1] == seen[2]
        assert sorted(seen[0]) == ["a", "b", "c"]

    run(test)


def test_an_address_that_the_name_has_no_more_is_given_up() -> None:
    async def test() -> None:
        own, gone = free_addresses(2)
        resolver = Resolver(own, gone)
        network = TcpNetwork("a", own, [], discovery=Discovery(NAME, resolver))
        await network.start()
        try:
            expected = {f"{own} (that is this process itself)", f"{gone} (nothing listens there)"}
            await _until(lambda: set(network.unreached()) == expected)
            resolver.addresses.clear()
            await _until(lambda: len(network.unreached()) == 1)
            assert network.unreached() == ["dns:members.test:7401 (it has no address)"]
        finally:
            await network.close()

    run(test)


def test_a_name_is_passed_as_peers() -> None:
    joined = priocast.join("g", member="a", listen="127.0.0.1:0", peers="dns:members:7401", founders=3)
    assert isinstance(joined.node.network, TcpNetwork)
    with pytest.raises(priocast.InvalidInput, match="also pass founders="):
        priocast.join("g", member="a", listen="127.0.0.1:0", peers="dns:members:7401")
    with pytest.raises(priocast.InvalidAddress, match="one name or a list of addresses, not both"):
        priocast.join("g", member="a", listen="127.0.0.1:0", peers=["dns:members:7401", "127.0.0.1:1"])
    with pytest.raises(priocast.InvalidInput, match="needs transport='tcp'"):
        priocast.open_node(
            "a", listen="127.0.0.1:0", peers="dns:members:7401", transport="udp", keys={"g": bytes(32)}
        )

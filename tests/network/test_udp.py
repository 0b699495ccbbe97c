"""UDP datagrams: sealed, shared by frames, lost, and sent once to many peers."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from priocast.core.errors import InvalidAddress, InvalidOption, UnusableKey
from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.network.address import Address
from priocast.network.udp import UdpNetwork
from priocast.network.udp_content import Sizes
from priocast.network.udp_pace import IN_FLIGHT_BYTES_MAX, IN_FLIGHT_BYTES_MIN
from priocast.network.udp_peer import SocketAddress
from priocast.network.udp_port import UdpPort
from priocast.network.udp_security import DatagramKind
from support.networks import LinkEnd, NetworkFactory, Recorder, free_address, started
from support.waiting import run, wait_until

KEYS = {"test": bytes(32)}


class Tap:
    """Counts the datagrams that a started network sends, by destination."""

    def __init__(self, network: UdpNetwork) -> None:
        self.sent: list[tuple[bytes, SocketAddress]] = []
        self.network = network
        self._transmit = network.transmit
        network.transmit = self._watch  # type: ignore[method-assign]

    def _watch(self, datagram: bytes, to: SocketAddress) -> None:
        self.sent.append((datagram, to))
        self._transmit(datagram, to)

    def count(self, kind: DatagramKind, address: Address) -> int:
        """How many datagrams of this kind were sent there."""
        return sum(1 for datagram, to in self.sent if to == address and datagram[3] == kind)


@asynccontextmanager
async def trio(factory: NetworkFactory) -> AsyncIterator[tuple[Tap, UdpPort, list[Recorder]]]:
    """Three connected processes: the first one's datagrams and port, and the recorders of the others."""
    networks = [factory.datagrams(name, "abc".replace(name, "")) for name in "abc"]
    async with started(*networks):
        recorders = [Recorder() for _ in networks]
        ports = [
            network.open("test", ProcessId(name), recorder)
            for network, name, recorder in zip(networks, "abc", recorders, strict=True)
        ]
        for name, recorder in zip("abc", recorders, strict=True):
            await recorder.wait_reaches(*"abc".replace(name, ""))
        yield Tap(networks[0]), ports[0], recorders


def test_small_frames_share_a_datagram_when_sent(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("udp", tmp_path)
        async with trio(factory) as (tap, port, recorders):
            port.send("b", [Frame(1, number, 0, 0, bytes(20)) for number in range(20)])
            await recorders[1].wait_received(20)
            assert tap.count(DatagramKind.FRAMES, factory.address("b")) == 1

    run(test)


@pytest.mark.parametrize("size", [1, 1000, Sizes(1400).whole(2), Sizes(1400).whole(2) + 1, 50_000])
def test_a_body_for_several_peers_is_sent_once(size: int, tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("multicast", tmp_path)
        async with trio(factory) as (tap, port, recorders):
            shared, alone = bytes(size), bytes([1]) * 10
            for_b = [Frame(11, 1, 2, 3, shared), Frame(11, 2, 2, 3, alone)]
            for_c = [Frame(12, 7, 8, 9, shared), Frame(12, 0, 8, 9)]
            port.send("b", for_b)
            port.send("c", for_c)
            assert not tap.count(DatagramKind.FRAMES, factory.address("b")), (
                "nothing is sent before the flush"
            )
            port.flush()
            await recorders[1].wait_received(2)
            await recorders[2].wait_received(2)
            sizes = Sizes(1400)
            fragments = 1 if size <= sizes.whole(2) else -(-size // sizes.fragment(2))
            assert tap.count(DatagramKind.SHARED, factory.multicast) == fragments
            for name in "bc":
                assert tap.count(DatagramKind.FRAMES, factory.address(name)) == 1
            assert {frame for _, frame in recorders[1].received} == set(for_b)
            assert {frame for _, frame in recorders[2].received} == set(for_c)

    run(test)


@pytest.mark.parametrize(("size", "reports"), [(4_000, False), (5_000, True)])
def test_receivers_report_on_large_bodies_only(size: int, reports: bool, tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("udp", tmp_path)
        networks = [factory.datagrams("a", "b"), factory.datagrams("b", "a")]
        async with started(*networks):
            ends = [LinkEnd(networks[0], "a", "b"), LinkEnd(networks[1], "b", "a")]
            await ends[0].wait_reaches("b")
            tap = Tap(networks[1])
            ends[0].send(bytes(size))
            await wait_until(lambda: ends[1].arrived == [bytes(size)])
            assert bool(tap.count(DatagramKind.RECEIVED, factory.address("a"))) is reports
            for end in ends:
                end.close()

    run(test)


def test_a_body_that_is_sent_again_meanwhile_is_sent_once(tmp_path: Path) -> None:
    """A link retransmits what is not acknowledged, also while it waits for its turn."""

    async def test() -> None:
        factory = NetworkFactory("multicast", tmp_path)
        async with trio(factory) as (tap, port, recorders):
            body = bytes(1_000_000)
            for name in "bc":
                port.send(name, [Frame(1, 1, 0, 0, body)])
            port.flush()
            peer = tap.network.groups[port.group_hash].peers["b"]
            assert tap.network.pacer.is_waiting(port.name_of(peer, Frame(1, 1, 0, 0)))
            sent = len(tap.sent)
            port.send("b", [Frame(1, 1, 0, 0, body)])
            port.flush()
            assert len(tap.sent) == sent
            for recorder in recorders[1:]:
                await recorder.wait_body(body)

    run(test)


def test_the_same_body_twice_for_one_peer_is_two_frames(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("multicast", tmp_path)
        async with trio(factory) as (_, port, recorders):
            body = bytes(20)
            twice = [Frame(1, 1, 0, 0, body), Frame(1, 2, 0, 0, body)]
            port.send("b", twice)
            port.send("c", twice[:1])
            port.flush()
            await recorders[1].wait_received(2)
            await recorders[2].wait_received(1)
            assert {frame.sequence for _, frame in recorders[1].received} == {1, 2}

    run(test)


def test_what_is_in_flight_to_a_peer_follows_the_buffers(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("udp", tmp_path)
        networks = [factory.datagrams(name, "abc".replace(name, "")) for name in "abc"]
        async with started(*networks):
            buffer = networks[0]._sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            everyone = 2 * len(networks[0].groups)
            share = max(IN_FLIGHT_BYTES_MIN, min(IN_FLIGHT_BYTES_MAX, buffer // (2 * everyone)))

            def flows() -> list[int]:
                peers = [peer for known in networks[0].groups.values() for peer in known.peers.values()]
                return [peer.flow.bytes_max for peer in peers if peer.confirmed]

            await wait_until(lambda: len(flows()) == everyone)
            assert flows() == [share] * everyone

    run(test)


def test_equal_bodies_of_different_identity_are_sent_separately(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("multicast", tmp_path)
        async with trio(factory) as (tap, port, recorders):
            for name in "bc":
                port.send(name, [Frame(1, 1, 0, 0, b"".join([b"equal", b" bodies"]))])
            port.flush()
            port.flush()
            await recorders[1].wait_received(1)
            await recorders[2].wait_received(1)
            assert tap.count(DatagramKind.SHARED, factory.multicast) == 0

    run(test)


def test_more_peers_than_link_headers_are_served_in_turn(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("multicast", tmp_path)
        async with trio(factory) as (tap, port, recorders):
            tap.network.sizes.headers = 1
            body = bytes(500)
            for name in "bc":
                port.send(name, [Frame(1, 1, 0, 0, body)])
            port.flush()
            await recorders[1].wait_received(1)
            await recorders[2].wait_received(1)
            assert tap.count(DatagramKind.SHARED, factory.multicast) == 1, "two fragments share a datagram"

    run(test)


@pytest.mark.parametrize("kind", ["udp", "multicast"])
def test_everything_arrives_over_a_network_that_loses_every_fifth_datagram(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        factory, dice = NetworkFactory(kind, tmp_path), Random(7)
        networks = [factory.datagrams("a", "b"), factory.datagrams("b", "a")]
        for network in networks:
            transmit = network.transmit

            def lossy(datagram: bytes, to: SocketAddress, transmit: object = transmit) -> None:
                if dice.random() > 0.2:
                    transmit(datagram, to)  # type: ignore[operator]

            network.transmit = lossy  # type: ignore[method-assign]
        async with started(*networks):
            ends = [LinkEnd(networks[0], "a", "b"), LinkEnd(networks[1], "b", "a")]
            for end, peer in zip(ends, "ba", strict=True):
                await end.wait_reaches(peer)
            bodies = [bytes([number]) * (1 + number * 3_000) for number in range(40)]
            for body in bodies:
                ends[0].send(body)
            await wait_until(lambda: len(ends[1].arrived) == len(bodies))
            assert ends[1].arrived == bodies
            for end in ends:
                end.close()

    run(test)


@pytest.mark.parametrize("datagram_bytes", [512, 9000, 65_507])
def test_datagrams_have_at_most_the_configured_size(datagram_bytes: int) -> None:
    async def test() -> None:
        addresses = free_address(), free_address()
        networks = [
            UdpNetwork(name, here, [there], keys=KEYS, incarnation=1, datagram_bytes=datagram_bytes)
            for name, here, there in zip("ab", addresses, addresses[::-1], strict=True)
        ]
        async with started(*networks):
            ends = [LinkEnd(networks[0], "a", "b"), LinkEnd(networks[1], "b", "a")]
            await ends[0].wait_reaches("b")
            tap = Tap(networks[0])
            ends[0].send(bytes(200_000))
            await wait_until(lambda: ends[1].arrived == [bytes(200_000)])
            assert datagram_bytes - 200 < max(len(datagram) for datagram, _ in tap.sent) <= datagram_bytes
            for end in ends:
                end.close()

    run(test)


def test_our_own_address_is_ignored_and_host_names_are_resolved() -> None:
    async def test() -> None:
        here, there = free_address(), free_address()
        own = [here, Address("localhost", here.port)]
        everywhere = Address("0.0.0.0", here.port)  # noqa: S104 - to find ourselves there
        one = UdpNetwork("a", everywhere, own, keys=KEYS, incarnation=1)
        other = UdpNetwork("b", there, [Address("localhost", here.port)], keys=KEYS, incarnation=1)
        async with started(one, other):
            recorder = Recorder()
            one.open("test", ProcessId("a"), recorder)
            await recorder.wait_reaches("b")
            assert not one.rejections

    run(test)


def test_unusable_addresses_are_named() -> None:
    async def test() -> None:
        network = UdpNetwork("a", free_address(), [], keys=KEYS, incarnation=1)
        async with started(network):
            for second in (
                UdpNetwork("b", network.address, [], keys=KEYS, incarnation=1),
                UdpNetwork("b", Address("nowhere.invalid", 1), [], keys=KEYS, incarnation=1),
            ):
                with pytest.raises(InvalidAddress, match="cannot listen on"):
                    await second.start()
                await second.close()
        multicast = Address("239.1.2.3", 1)
        lost = UdpNetwork("c", Address("::1", 0), [], keys=KEYS, incarnation=1, multicast=multicast)
        with pytest.raises(InvalidAddress, match=r"cannot join 239.1.2.3"):
            await lost.start()
        await lost.close()

    run(test)


def test_invalid_options_are_rejected() -> None:
    here = free_address()
    with pytest.raises(UnusableKey, match="must have 32 bytes, not 3"):
        UdpNetwork("a", here, [], keys={"test": b"abc"}, incarnation=1)
    for datagram_bytes in (511, 65_508):
        with pytest.raises(InvalidOption, match="datagram_bytes must be between 512 and 65507"):
            UdpNetwork("a", here, [], keys=KEYS, incarnation=1, datagram_bytes=datagram_bytes)
    for host in ("127.0.0.1", "host"):
        with pytest.raises(InvalidAddress, match="not a multicast address"):
            UdpNetwork("a", here, [], keys=KEYS, incarnation=1, multicast=Address(host, 1))
    with pytest.raises(UnusableKey, match=r"no key for group .other."):
        UdpNetwork("a", here, [], keys=KEYS, incarnation=1).open("other", ProcessId("a"), Recorder())


def test_with_certificates_multicast_finds_peers_and_carries_nothing_else(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("multicast", tmp_path)
        factory.datagrams("a")  # chooses the multicast address
        networks = [
            UdpNetwork(
                name,
                factory.address(name),
                [],
                keys=factory.keys,
                incarnation=1,
                multicast=factory.multicast,
                security=factory.certificate(name),
            )
            for name in "abc"
        ]
        tap = Tap(networks[0])
        async with started(*networks):
            recorders = [Recorder() for _ in networks]
            ports = [
                network.open("test", ProcessId(name), recorder)
                for network, name, recorder in zip(networks, "abc", recorders, strict=True)
            ]
            await recorders[0].wait_reaches("b", "c")
            body = bytes(5000)
            for name in "bc":
                ports[0].send(name, [Frame(1, 1, 0, 0, body)])
            ports[0].flush()
            for recorder in recorders[1:]:
                await recorder.wait_body(body)
            assert not tap.count(DatagramKind.SHARED, factory.multicast)
            assert tap.count(DatagramKind.CALL, factory.multicast)
            assert not any(network.rejections for network in networks)

    run(test)

"""Qualities of service over UDP that loses, repeats and reorders datagrams."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import priocast
from priocast.network.address import Address
from priocast.network.udp import UdpNetwork
from priocast.network.udp_peer import SocketAddress
from support.groups import Cluster, Reader, entered, reading_with
from support.networks import NetworkFactory, free_address
from support.waiting import run, wait_until

QUALITIES = (priocast.at_least(2), priocast.RELIABLE, priocast.CAUSAL, priocast.ATOMIC, priocast.TIGHT)
MESSAGES = 8


class ServiceReader(Reader):
    """Reads the messages with a quality of service."""

    @property
    def taken(self) -> list[tuple[str, bytes]]:
        services = [event for event in self.events if isinstance(event, priocast.ServiceDelivery)]
        return [(event.sender.name, event.payload) for event in services]


def make_lossy(network: object, dice: Random) -> None:
    """Lose every fifth datagram from now on, and send every fifth one twice, the second time later."""
    assert isinstance(network, UdpNetwork)
    transmit: Callable[[bytes, SocketAddress], None] = network.transmit
    loop = asyncio.get_running_loop()

    def lossy(datagram: bytes, to: SocketAddress) -> None:
        fate = dice.random()
        if fate > 0.2:
            transmit(datagram, to)
        if fate > 0.8:
            loop.call_later(0.02 * dice.random(), transmit, datagram, to)

    network.transmit = lossy  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("quality", "kind"),
    [
        *((each, "udp") for each in QUALITIES),
        (priocast.RELIABLE, "multicast"),
        (priocast.ATOMIC, "multicast"),
    ],
    ids=str,
)
def test_a_quality_keeps_its_promise_over_a_network_that_loses_every_fifth_datagram(
    quality: priocast.Quality, kind: str, tmp_path: Path
) -> None:
    multicast = None
    if kind == "multicast":
        multicast = str(Address(NetworkFactory(kind, tmp_path).multicast.host, free_address().port))

    async def test() -> None:
        cluster, dice = Cluster("udp", "abc"), Random(3)
        joinings = [cluster.join(name, multicast=multicast) for name in cluster.names]
        async with entered(*joinings) as members, reading_with(ServiceReader, *members) as readers:
            for joining in joinings:
                make_lossy(joining.node.network, dice)
            sending = [
                member.send(b"%d" % number, quality=quality)
                for number in range(MESSAGES)
                for member in members
            ]
            receipts = await asyncio.gather(*sending)
            assert all(receipt.accepted and not receipt.rejected for receipt in receipts)
            assert any(receipt.rounds > 1 for receipt in receipts), "some frames were lost"
            if quality.count is None:
                everything = {(name, b"%d" % each) for name in "abc" for each in range(MESSAGES)}
                await wait_until(lambda: all(set(reader.taken) == everything for reader in readers))
            for reader in readers:
                for name in "abc":
                    numbers = [int(payload) for sender, payload in reader.taken if sender == name]
                    assert numbers == sorted(set(numbers)), "once, and in the order of their sender"
            if quality in (priocast.ATOMIC, priocast.TIGHT):
                assert readers[0].taken == readers[1].taken == readers[2].taken

    run(test)

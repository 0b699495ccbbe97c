"""An outsider without the key copies sealed datagrams to members that they were not meant for."""

import asyncio
import socket

import pytest

import priocast
from priocast.network.udp import UdpNetwork
from priocast.network.udp_peer import SocketAddress
from support.groups import Cluster, entered
from support.waiting import run, wait_until

MESSAGES = 60


class Copier:
    """Sends a copy of every datagram between two members to the third one, from a socket of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.count = 0
        self._addresses = {name: cluster.factory.address(name) for name in cluster.names}
        self._socket = socket.socket(type=socket.SOCK_DGRAM)

    def tap(self, name: str, network: UdpNetwork) -> None:
        """Copy what this member sends from now on, before the original is sent."""
        transmit = network.transmit

        def copy(datagram: bytes, to: SocketAddress) -> None:
            for other, address in self._addresses.items():
                if other != name and tuple(address) != tuple(to):
                    self._socket.sendto(datagram, address)
                    self.count += 1
            transmit(datagram, to)

        network.transmit = copy  # type: ignore[method-assign]

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize(
    ("network", "order"),
    [
        ("udp", "sequencer-bb"),
        ("udp", "sequencer-uub"),
        ("udp", "moving-ub"),
        ("udp", "agreement-skeen"),
        ("certified", "sequencer-bb"),
    ],
)
def test_copies_are_rejected_and_the_order_stays_one(network: str, order: str) -> None:
    async def test() -> None:
        cluster = Cluster(network, "abc")
        copier = Copier(cluster)
        joining = [cluster.join(name, order=order) for name in "abc"]
        networks = [each.node.network for each in joining]
        for name, each in zip("abc", networks, strict=True):
            assert isinstance(each, UdpNetwork)
            copier.tap(name, each)

        async def deliver(group: priocast.Group) -> list[bytes]:
            delivered = []
            async for event in group:
                assert not isinstance(event, priocast.Evicted)
                if isinstance(event, priocast.Delivery):
                    delivered.append(event.message.payload)
                    if len(delivered) == 3 * MESSAGES:
                        break
            return delivered

        async def speak(name: str, group: priocast.Group) -> None:
            for number in range(MESSAGES):
                await group.broadcast(f"{name}{number}".encode())
                await asyncio.sleep(0.002)

        async with entered(*joining) as members:
            speaking = [asyncio.create_task(speak(*each)) for each in zip("abc", members, strict=True)]
            delivered = await asyncio.gather(*map(deliver, members))
            await asyncio.gather(*speaking)
            assert delivered[0] == delivered[1] == delivered[2]
            assert [len(member.view.members) for member in members] == [3, 3, 3]
            assert copier.count > MESSAGES
            await wait_until(lambda: all(each.rejections["not authentic"] for each in networks))
        copier.close()

    run(test)

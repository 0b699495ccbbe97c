"""Priocast as it is: a prioritised group over TCP. The last argument chooses batches or single messages.

Or batches over UDP, where what goes to all members is multicast, on the loopback interface. It carries the
largest datagrams whole.
"""

import asyncio
import sys
from contextlib import suppress

import priocast
from benchmarks.peers.member_loop import PeerClient, run_member

_GROUP = "peers"
_MULTICAST_HOST = "239.77.0.1"
_DATAGRAM_BYTES = 65_507
_BURST = 512
_LEVELS = 8


class PriocastMember(PeerClient):
    """A member of a prioritised group; it sends and receives a message at a time."""

    async def start(self) -> None:
        self._group = await self._join()
        self._receiving = asyncio.create_task(self._receive())

    async def _join(self) -> priocast.Group:
        own = self.addresses[self.rank]
        others = [each for each in self.addresses if each != own]
        return await priocast.join(_GROUP, member=f"m{self.rank}", listen=own, peers=others, incarnation=1)

    async def _receive(self) -> None:
        with suppress(priocast.GroupClosed):
            async for event in self._group:
                if isinstance(event, priocast.Delivery):
                    self.delivered_one(event.message.payload)

    async def send(self, payload: bytes) -> None:
        await self._group.broadcast(payload)

    async def send_many(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            await self._group.broadcast(payload)

    async def stop(self) -> None:
        await self._group.leave()
        await self._receiving


class PriocastBatches(PriocastMember):
    """The same with `broadcast_many`, in bursts of eight levels in turn, and `batches`."""

    async def _receive(self) -> None:
        with suppress(priocast.GroupClosed):
            async for batch in self._group.batches():
                self.delivered(list(batch.payloads))

    async def send_many(self, payloads: list[bytes]) -> None:
        for turn, start in enumerate(range(0, len(payloads), _BURST)):
            level = 256 // _LEVELS * (turn % _LEVELS)
            await self._group.broadcast_many(payloads[start : start + _BURST], level)


class PriocastMulticasts(PriocastBatches):
    """The same over UDP; datagrams are sealed, as always there."""

    async def _join(self) -> priocast.Group:
        port = self.addresses[0].rpartition(":")[2]
        return await priocast.join(
            _GROUP,
            member=f"m{self.rank}",
            listen=self.addresses[self.rank],
            transport="udp",
            multicast=f"{_MULTICAST_HOST}:{port}",
            datagram_bytes=_DATAGRAM_BYTES,
            keys={_GROUP: bytes(range(32))},
            size=len(self.addresses),
            incarnation=1,
        )


_CLIENTS = {"batches": PriocastBatches, "single": PriocastMember, "multicasts": PriocastMulticasts}

if __name__ == "__main__":
    run_member(_CLIENTS[sys.argv.pop()])

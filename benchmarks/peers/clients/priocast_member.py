"""Priocast as it is: a prioritised group over TCP. The last argument chooses batches or single messages."""

import asyncio
import sys
from contextlib import suppress

import priocast
from benchmarks.peers.member_loop import PeerClient, run_member

_BURST = 512
_LEVELS = 8


class PriocastMember(PeerClient):
    """A member of a prioritised group; it sends and receives a message at a time."""

    async def start(self) -> None:
        own = self.addresses[self.rank]
        self._joining = priocast.join(
            "peers",
            member=f"m{self.rank}",
            listen=own,
            peers=[each for each in self.addresses if each != own],
            incarnation=1,
        )
        self._group = await self._joining.__aenter__()
        self._receiving = asyncio.create_task(self._receive())

    async def _receive(self) -> None:
        with suppress(priocast.GroupClosed):
            async for event in self._group:
                if isinstance(event, priocast.Delivery):
                    self.delivered([event.message.payload])

    async def send(self, payload: bytes) -> None:
        await self._group.broadcast(payload)

    async def stop(self) -> None:
        await self._joining.__aexit__(None, None, None)
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


if __name__ == "__main__":
    run_member(PriocastBatches if sys.argv.pop() == "batches" else PriocastMember)

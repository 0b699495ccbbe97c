"""A network within one process: for tests, and for groups whose members share an event loop."""

import asyncio

from priocast.core.errors import JoinRefused, PeerFault
from priocast.core.identity import ProcessId
from priocast.links.fifo_link import RELIABLE_NETWORK, Frame
from priocast.network.interface import Introduction, Receiver


class MemoryHub:
    """Where the members of memory networks meet."""

    def __init__(self) -> None:
        self.members: dict[ProcessId, MemoryNetwork] = {}

    def network(self, introduction: Introduction) -> "MemoryNetwork":
        """A network for one more member."""
        return MemoryNetwork(self, introduction)


class MemoryNetwork:
    """Frames are handed over as they are, in the next round of the event loop."""

    link_options = RELIABLE_NETWORK

    def __init__(self, hub: MemoryHub, introduction: Introduction) -> None:
        self._hub = hub
        self._introduction = introduction
        self._me = introduction.process
        self._receiver: Receiver | None = None
        self._opened = False
        self._waiting: list[tuple[ProcessId, list[Frame]]] = []

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        for peer, other in self._hub.members.items():
            reason = other._introduction.refusal_of(self._introduction)
            if reason:
                raise JoinRefused(reason)
            try:
                other._told().introduced(self._me)
            except PeerFault as error:
                raise JoinRefused(str(error)) from error
            receiver.introduced(peer)
            other._told().connected(self._me)
            receiver.connected(peer)
        self._hub.members[self._me] = self

    def open(self) -> None:
        self._opened = True
        for peer, frames in self._waiting:
            self._told().frames_received(peer, frames)
        self._waiting.clear()

    def send(self, peer: ProcessId, frames: list[Frame]) -> None:
        other = self._hub.members.get(peer)
        if other is not None:
            asyncio.get_running_loop().call_soon(other._take, self._me, frames)

    async def close(self) -> None:
        if self._hub.members.pop(self._me, None) is not None:
            for other in self._hub.members.values():
                other._told().departed(self._me)

    def _take(self, peer: ProcessId, frames: list[Frame]) -> None:
        if self._me not in self._hub.members:
            return
        if self._opened:
            self._told().frames_received(peer, frames)
        else:
            self._waiting.append((peer, frames))

    def _told(self) -> Receiver:
        assert self._receiver is not None, "the network was started"
        return self._receiver

"""ZooKeeper: writes to znodes, answered by the leader's transaction number (zxid), up to 1,000 in flight.

A watch tells that something has changed, not every change in its order, so this is no delivery to all: a
write counts when its writer has the answer. The transaction numbers are the order that is checked. A member's
rate is that of its own writes, times the members: the slowest writer counts, as elsewhere the slowest reader.
"""

import asyncio
import struct
from collections import deque
from typing import cast

from benchmarks.peers.member_loop import PeerClient, run_member

SERVERS = 3
_IN_FLIGHT_MAX = 1_000
_READY_SECONDS = 60.0
_CREATE, _SET_DATA = 1, 5
_NODE_EXISTS = -110
_WORLD = struct.pack(">i", 1) + struct.pack(">i", 31) + b"\0\0\0\5world" + b"\0\0\0\6anyone"


class ZookeeperMember(PeerClient):
    """A client of one of three servers; the addresses of the servers follow those of the members."""

    async def start(self) -> None:
        self.addresses, servers = self.addresses[:-SERVERS], self.addresses[-SERVERS:]
        self._path = f"/peers-{self.rank}"
        self._free = asyncio.Semaphore(_IN_FLIGHT_MAX)
        self._waiting: deque[bytes] = deque()
        self._number, self._zxid = 0, 0
        await self._connect(servers[self.rank % SERVERS])
        self._request(_CREATE, _buffer(self._path.encode()) + _buffer(b"") + _WORLD + struct.pack(">i", 0))
        error = struct.unpack(">i", (await self._answer())[12:16])[0]
        if error not in (0, _NODE_EXISTS):
            raise ConnectionError(f"ZooKeeper: error {error}")
        self._reading = asyncio.create_task(self._read())

    async def _connect(self, server: str) -> None:
        """Open a session; a server without a quorum closes the connection."""
        host, port = server.split(":")
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                self._reader, self._writer = await asyncio.open_connection(host, int(port))
                self._writer.write(_buffer(struct.pack(">iqiq", 0, 0, 30_000, 0) + _buffer(bytes(16))))
                try:
                    await self._answer()
                    return
                except (asyncio.IncompleteReadError, ConnectionError):
                    await asyncio.sleep(0.2)

    def _request(self, operation: int, body: bytes) -> None:
        self._number += 1
        self._writer.write(_buffer(struct.pack(">ii", self._number, operation) + body))

    async def _answer(self) -> bytes:
        size = struct.unpack(">i", await self._reader.readexactly(4))[0]
        return await self._reader.readexactly(size)

    async def send(self, payload: bytes) -> None:
        await self._free.acquire()
        self._waiting.append(payload)
        self._request(_SET_DATA, _buffer(self._path.encode()) + _buffer(payload) + struct.pack(">i", -1))

    async def _read(self) -> None:
        while True:
            _, zxid, error = struct.unpack(">iqi", (await self._answer())[:16])
            if error or zxid <= self._zxid:
                raise ConnectionError(f"ZooKeeper: error {error}, transaction {zxid} after {self._zxid}")
            self._zxid = zxid
            self._free.release()
            self.delivered([self._waiting.popleft()])

    async def rate(self, messages: int, size: int) -> dict[str, object]:
        """The writes of the group: as many as its members, all as fast as this one."""
        answer = await super().rate(messages, size)
        return answer | {"rate": cast("float", answer["rate"]) * len(self.addresses)}

    def _expect(self, messages: int) -> None:
        """Only its own writes are answered here."""
        super()._expect(messages)
        self._expected = messages

    def _digest(self) -> str:
        """Members get different answers; that the transaction numbers of each rise was checked."""
        return "rising"

    async def stop(self) -> None:
        self._reading.cancel()
        self._writer.close()


def _buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


if __name__ == "__main__":
    run_member(ZookeeperMember)

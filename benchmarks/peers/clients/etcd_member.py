"""etcd: puts of different keys over its HTTP gateway, and a watch of all, in the order of revisions."""

import asyncio
import base64
import itertools
import json

from benchmarks.peers.etcd_gateway import Connection, is_written, request_of, text_of, wait_ready
from benchmarks.peers.member_loop import PeerClient, run_member

SERVERS = 3
CONNECTIONS = 32
_READY_SECONDS = 60.0
_PREFIX, _PREFIX_END = b"/peers/", b"/peers0"


class EtcdMember(PeerClient):
    """A client of one of three servers; the addresses of the servers follow those of the members."""

    async def start(self) -> None:
        self.addresses, servers = self.addresses[:-SERVERS], self.addresses[-SERVERS:]
        host, port = servers[self.rank % SERVERS].split(":")
        self._keys = itertools.count()
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        self._puts: set[asyncio.Task[None]] = set()
        for _ in range(CONNECTIONS):
            self._free.put_nowait(await asyncio.open_connection(host, int(port)))
        connection = await self._free.get()
        await wait_ready(connection)
        self._free.put_nowait(connection)
        reader, self._watch_writer = await asyncio.open_connection(host, int(port))
        request: dict[str, object] = {
            "create_request": {"key": text_of(_PREFIX), "range_end": text_of(_PREFIX_END)}
        }
        self._watch_writer.write(request_of("/v3/watch", request))
        created = asyncio.get_running_loop().create_future()
        self._watching = asyncio.create_task(self._watch(reader, created))
        async with asyncio.timeout(_READY_SECONDS):
            await created

    async def _watch(self, reader: asyncio.StreamReader, created: "asyncio.Future[None]") -> None:
        """Every line of the answer is a document; a chunk of it may have several, or a part of one."""
        await reader.readuntil(b"\r\n\r\n")
        text = b""
        while size := int(await reader.readline(), 16):
            text += (await reader.readexactly(size + 2))[:-2]
            *lines, text = text.split(b"\n")
            for line in lines:
                result = json.loads(line)["result"]
                if result.get("created"):
                    created.set_result(None)
                self.delivered([base64.b64decode(event["kv"]["value"]) for event in result.get("events", ())])

    async def send(self, payload: bytes) -> None:
        connection = await self._free.get()
        task = asyncio.create_task(self._put(connection, payload))
        self._puts.add(task)
        task.add_done_callback(self._puts.discard)

    async def _put(self, connection: Connection, payload: bytes) -> None:
        key = _PREFIX + f"{self.rank}/{next(self._keys)}".encode()
        if not await is_written(connection, key, payload):
            raise ConnectionError("etcd did not accept a put")
        self._free.put_nowait(connection)

    async def settle(self) -> None:
        await asyncio.gather(*self._puts)

    async def stop(self) -> None:
        self._watching.cancel()
        self._watch_writer.close()
        while not self._free.empty():
            self._free.get_nowait()[1].close()


if __name__ == "__main__":
    run_member(EtcdMember)

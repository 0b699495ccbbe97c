"""NATS JetStream: publishes to a replicated stream, with acknowledgements, and an ephemeral consumer of it.

The protocol of NATS is lines of text over TCP; this client speaks the few that it needs.
"""

import asyncio
import json

from benchmarks.peers.member_loop import PeerClient, run_member

SUBJECT = "peers"
STREAM = "peers"
REPLICAS = 3
_IN_FLIGHT_MAX = 1_000
_ATTEMPTS = 100


class NatsMember(PeerClient):
    """A client of one of three servers; the addresses of the servers follow those of the members."""

    async def start(self) -> None:
        self.addresses, servers = self.addresses[:-REPLICAS], self.addresses[-REPLICAS:]
        host, port = servers[self.rank % REPLICAS].split(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))
        self._free = asyncio.Semaphore(_IN_FLIGHT_MAX)
        self._answers: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        self._writer.write(b'CONNECT {"verbose":false,"pedantic":false}\r\n')
        for number, subject in enumerate((f"answer.{self.rank}", f"acks.{self.rank}", f"in.{self.rank}"), 1):
            self._writer.write(f"SUB {subject} {number}\r\n".encode())
        self._reading = asyncio.create_task(self._read())
        await self._ask(
            f"$JS.API.STREAM.CREATE.{STREAM}",
            {"name": STREAM, "subjects": [SUBJECT], "storage": "memory", "num_replicas": REPLICAS},
        )
        await self._ask(
            f"$JS.API.CONSUMER.CREATE.{STREAM}",
            {
                "stream_name": STREAM,
                "config": {
                    "deliver_subject": f"in.{self.rank}",
                    "ack_policy": "none",
                    "deliver_policy": "new",
                    "mem_storage": True,
                    "num_replicas": 1,
                },
            },
        )

    async def _ask(self, subject: str, question: dict[str, object]) -> None:
        """Ask until the servers have a leader, and the stream is there."""
        for _ in range(_ATTEMPTS):
            self._publish(subject, f"answer.{self.rank}", json.dumps(question).encode())
            try:
                async with asyncio.timeout(2.0):
                    answer = await self._answers.get()
            except TimeoutError:
                continue
            if "error" not in answer:
                return
            await asyncio.sleep(0.2)
        raise TimeoutError(f"NATS does not answer {subject}: {answer}")

    def _publish(self, subject: str, reply: str, payload: bytes) -> None:
        self._writer.write(
            b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), reply.encode(), len(payload), payload)
        )

    async def send(self, payload: bytes) -> None:
        await self._free.acquire()
        self._publish(SUBJECT, f"acks.{self.rank}", payload)
        if self._writer.transport.get_write_buffer_size() > 1 << 16:
            await self._writer.drain()

    async def _read(self) -> None:
        delivered: list[bytes] = []
        while line := await self._reader.readline():
            words = line.split()
            if words[0] == b"PING":
                self._writer.write(b"PONG\r\n")
            elif words[0] == b"MSG":
                body = (await self._reader.readexactly(int(words[-1]) + 2))[:-2]
                self._on_message(int(words[2]), body, delivered)
            elif words[0] == b"-ERR":
                raise ConnectionError(line.decode())
            if delivered and not self._reader._buffer:  # type: ignore[attr-defined]  # what one read has brought
                self.delivered(delivered)
                delivered = []

    def _on_message(self, subscription: int, body: bytes, delivered: list[bytes]) -> None:
        if subscription == 1:
            self._answers.put_nowait(json.loads(body))
        elif subscription == 2:
            self._free.release()
        else:
            delivered.append(body)

    async def stop(self) -> None:
        self._reading.cancel()
        self._writer.close()


if __name__ == "__main__":
    run_member(NatsMember)

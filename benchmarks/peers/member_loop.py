"""One member of a comparison, from within: it reads commands and answers in lines of JSON.

Every system has a small client with the same commands, in the language of its library:

    rate MESSAGES BYTES        send so many as fast as flow control allows; receive those of all members
    delivery COUNT RATE BYTES  send at a steady rate; receive all; answer with the times of the own messages
    (end of input)             leave

The first 8 bytes of a message are its sender's rank and its number. The digest is over those of all messages
in the order in which they were delivered: equal digests are an equal order. It is computed as they arrive, so
that no client keeps what it has received.
"""

import asyncio
import json
import sys
import time
import zlib
from abc import ABC, abstractmethod

import numpy

from priocast.runtime import event_loop
from priocast.runtime.gc_freeze import freeze_gc

HEADER_BYTES = 8
_LIMIT_SECONDS = 120.0
#: When all send as fast as they can, so many messages that come one by one are noted together.
_NOTED_TOGETHER = 256


class PeerClient(ABC):
    """A member of one system. It calls `delivered` with each message, in the order of the group.

    A system that delivers one message at a time calls `delivered_one`, which costs little beside that.
    """

    def __init__(self, rank: int, addresses: list[str]) -> None:
        self.rank = rank
        self.addresses = addresses
        self._received = 0
        self._checksum = 0
        self._times_ns: list[int] = []
        self._sent_ns: list[int] = []
        self._first_ns = self._last_ns = 0
        self._expected = 0
        self._complete: asyncio.Future[None] | None = None
        self._unnoted: list[bytes] = []
        self._noted_together = self._noted_next = 1

    @abstractmethod
    async def start(self) -> None:
        """Join; return when all members are there."""

    @abstractmethod
    async def send(self, payload: bytes) -> None:
        """Send a message; wait while the system wants that."""

    async def send_many(self, payloads: list[bytes]) -> None:
        """Send messages as fast as the system allows."""
        for payload in payloads:
            await self.send(payload)

    async def settle(self) -> None:  # noqa: B027  # most systems have nothing to wait for
        """Wait for what is still in flight after the last `send`."""

    @abstractmethod
    async def stop(self) -> None:
        """Leave."""

    def delivered_one(self, payload: bytes) -> None:
        """A message was delivered; it is noted at once if it is the first, the last, or timed."""
        unnoted = self._unnoted
        unnoted.append(payload)
        if len(unnoted) >= self._noted_next:
            self.delivered(unnoted)
            unnoted.clear()
            self._noted_next = max(1, min(self._noted_together, self._expected - self._received))

    def delivered(self, payloads: list[bytes]) -> None:
        """Messages were delivered, in this order."""
        now = time.perf_counter_ns()
        if not payloads:
            return
        if not self._received:
            self._first_ns = now
        self._last_ns = now
        self._received += len(payloads)
        self._checksum = zlib.crc32(_headers(payloads), self._checksum)
        if self._sent_ns:
            for payload in payloads:
                rank, number = _header(payload)
                if rank == self.rank:
                    self._times_ns.append(now - self._sent_ns[number])
        self._check_complete()

    def _check_complete(self) -> None:
        waiting = self._complete is not None and not self._complete.done()
        if waiting and self._received >= self._expected:
            self._complete.set_result(None)  # type: ignore[union-attr]  # it is waited for

    async def rate(self, messages: int, size: int) -> dict[str, object]:
        """All members send as fast as they can."""
        payloads = [_payload(self.rank, number, size) for number in range(messages)]
        self._expect(messages)
        self._noted_together = _NOTED_TOGETHER
        began_ns = time.perf_counter_ns()
        sending = asyncio.create_task(self.send_many(payloads))
        await self._wait_complete()
        await sending
        await self.settle()
        # Few messages may all be delivered at once.
        since_ns = self._first_ns if self._last_ns > self._first_ns else began_ns
        seconds = (self._last_ns - since_ns) / 1e9
        return self._finish({"rate": self._received / seconds})

    async def delivery(self, count: int, rate: float, size: int) -> dict[str, object]:
        """All members send at a steady rate, not at the same time."""
        self._expect(count)
        started = time.perf_counter() + self.rank / len(self.addresses) / rate
        for number in range(count):
            await asyncio.sleep(started + number / rate - time.perf_counter())
            self._sent_ns.append(time.perf_counter_ns())
            await self.send(_payload(self.rank, number, size))
        await self._wait_complete()
        await self.settle()
        return self._finish({"times_us": [each / 1000 for each in self._times_ns]})

    def _expect(self, messages: int) -> None:
        """Messages of a faster member may have arrived before this one has its command."""
        self._expected = messages * len(self.addresses)
        self._complete = asyncio.get_running_loop().create_future()
        self._check_complete()

    def _finish(self, answer: dict[str, object]) -> dict[str, object]:
        """Add the digest, and be ready for the next messages: nobody sends any before all have answered."""
        answer["digest"] = self._digest()
        self._received, self._checksum = 0, 0
        self._sent_ns, self._times_ns, self._complete = [], [], None
        self._noted_together = self._noted_next = 1
        return answer

    async def _wait_complete(self) -> None:
        assert self._complete is not None
        async with asyncio.timeout(_LIMIT_SECONDS):
            await self._complete

    def _digest(self) -> str:
        return f"{self._checksum:08x}"


def _payload(rank: int, number: int, size: int) -> bytes:
    return rank.to_bytes(4) + number.to_bytes(4) + bytes(size - HEADER_BYTES)


def _header(payload: bytes) -> tuple[int, int]:
    return int.from_bytes(payload[:4]), int.from_bytes(payload[4:HEADER_BYTES])


def _headers(payloads: list[bytes]) -> bytes:
    """The first bytes of messages of the same size: cheaper than a slice of each."""
    rows = numpy.frombuffer(b"".join(payloads), numpy.uint8).reshape(len(payloads), -1)
    return rows[:, :HEADER_BYTES].tobytes()


def run_member(client: type[PeerClient]) -> None:
    """Run a member: its rank and the addresses of all are its arguments."""
    event_loop.run(_work(client(int(sys.argv[1]), sys.argv[2:])))


async def _work(client: PeerClient) -> None:
    await client.start()
    freeze_gc()
    _answer({"ready": True})
    loop = asyncio.get_running_loop()
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).split():
        match line:
            case ["rate", messages, size]:
                _answer(await client.rate(int(messages), int(size)))
            case ["delivery", count, rate, size]:
                _answer(await client.delivery(int(count), float(rate), int(size)))
            case _:
                sys.exit(f"unknown command: {' '.join(line)}")
    await client.stop()


def _answer(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()

"""Answers the readers of a feed, each over a connection of its own."""

import asyncio
import logging
import ssl
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from contextlib import suppress

from priocast.core.decoding import decode
from priocast.core.errors import PeerFault, TrimmedPosition
from priocast.core.role import Role
from priocast.feed.feed_log import FeedLog
from priocast.feed.feed_packets import (
    HEADER,
    PART_BYTES_MAX,
    QUESTION_BYTES_MAX,
    FeedAnswer,
    FeedQuestion,
    MessagesAnswer,
    RangeAnswer,
    RangeQuestion,
    RejectedAnswer,
    TrimmedAnswer,
    decode_question,
    packed,
)
from priocast.network.address import Address
from priocast.network.security import TlsSecurity, groups_in

log = logging.getLogger("priocast.feed")

_CONNECTIONS_MAX = 64
_IDLE_SECONDS = 60.0


class FeedServer:
    """Listens for readers of one feed.

    With TLS, a reader needs a certificate of the group, in whatever role. Without it, whoever can connect can
    read: so an address that other machines reach needs TLS.
    """

    def __init__(self, group: str, kept: FeedLog, tls: TlsSecurity | None) -> None:
        self._group = group
        self._kept = kept
        self._context = tls.contexts()[0] if tls is not None else None
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], StreamWriter] = {}

    async def open(self, address: Address) -> Address:
        """Listen; return the address, with the port that was chosen."""
        self._server = await asyncio.start_server(
            self._serve, address.host, address.port, ssl=self._context, limit=QUESTION_BYTES_MAX
        )
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    async def close(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for writer in self._connections.values():
            writer.close()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            if len(self._connections) > _CONNECTIONS_MAX:
                await self._answer(writer, RejectedAnswer("the feed has too many readers"))
            elif (reason := self._objection(writer)) is not None:
                await self._answer(writer, RejectedAnswer(reason))
            else:
                await self._converse(reader, writer)
        except (OSError, IncompleteReadError, TimeoutError, ssl.SSLError):
            pass  # the reader went away: it asks this feed again, or another one
        except PeerFault as error:
            log.warning("a reader of the feed was rejected: %s", error)
        finally:
            del self._connections[task]
            writer.close()
            with suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    def _objection(self, writer: StreamWriter) -> str | None:
        """Why the peer may not read, if it may not."""
        if self._context is None or self._group in groups_in(
            writer.get_extra_info("peercert"), Role.OBSERVER
        ):
            return None
        return f"the certificate does not include group {self._group!r}"

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            async with asyncio.timeout(_IDLE_SECONDS):
                (length,) = HEADER.unpack(await reader.readexactly(HEADER.size))
                if length > QUESTION_BYTES_MAX:
                    raise PeerFault(f"a question of {length:,} bytes")
                body = await reader.readexactly(length)
            question = decode(decode_question, body, "a reader", "a question")
            await self._answer(writer, await asyncio.to_thread(self._answer_to, question))

    async def _answer(self, writer: StreamWriter, answer: FeedAnswer) -> None:
        writer.write(packed(answer))
        async with asyncio.timeout(_IDLE_SECONDS):
            await writer.drain()

    def _answer_to(self, question: FeedQuestion) -> FeedAnswer:
        kept = self._kept
        if question.group != self._group:
            return RejectedAnswer(f"this is a feed of group {self._group!r}, not of {question.group!r}")
        if isinstance(question, RangeQuestion):
            return RangeAnswer(kept.begin, kept.end)
        try:
            return MessagesAnswer(*kept.read(question.first, question.count_max, PART_BYTES_MAX))
        except TrimmedPosition:
            return TrimmedAnswer(kept.begin)

"""Requests over HTTP: what a reply may be, and what it means when it is cut off."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from priocast.core.errors import ForeignFrame, InvalidInput
from priocast.network.address import Address
from priocast.operations.http_client import request, responding
from support.waiting import run


@asynccontextmanager
async def replying(reply: bytes) -> AsyncIterator[Address]:
    """A server that sends this to everybody, and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Address(*server.sockets[0].getsockname())


@pytest.mark.parametrize(
    ("reply", "error", "text"),
    [
        (b"", ForeignFrame, "closed the connection"),
        (b"SSH-2.0-OpenSSH\r\n", ForeignFrame, "not an admin address"),
        (b"HTTP/1.1 500 No\r\n\r\n", ForeignFrame, "status 500"),
        (b"HTTP/1.1 403 No\r\n\r\nwhy not", InvalidInput, "why not"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", ConnectionResetError, "closed the connection"),
    ],
)
def test_replies_that_are_no_answer(reply: bytes, error: type[Exception], text: str) -> None:
    async def test() -> None:
        async with replying(reply) as address:
            with pytest.raises(error, match=text):
                await request(address, "GET", "/status")

    run(test)


def test_a_body_is_returned_whole_and_a_stream_as_it_comes() -> None:
    async def test() -> None:
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n"
        async with replying(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody") as address:
            assert await request(address, "GET", "/status") == b"body"
        found = b""
        async with replying(chunked) as address, responding(address, "GET", "/events") as (status, chunks):
            with pytest.raises(ConnectionResetError):
                async for chunk in chunks:
                    found += chunk
            assert (status, found) == (200, b"onetwo")

    run(test)

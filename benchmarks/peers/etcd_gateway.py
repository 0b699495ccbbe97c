"""Puts over etcd's HTTP gateway, which needs no client library."""

import asyncio
import base64
import json

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_READY_SECONDS = 60.0
_RETRY_SECONDS = 0.2


def text_of(data: bytes) -> str:
    """Bytes as the gateway's documents have them."""
    return base64.b64encode(data).decode()


def request_of(path: str, document: dict[str, object]) -> bytes:
    """A request with a document."""
    body = json.dumps(document).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def is_written(connection: Connection, key: bytes, value: bytes) -> bool:
    """Put; returns whether etcd has accepted it."""
    reader, writer = connection
    writer.write(request_of("/v3/kv/put", {"key": text_of(key), "value": text_of(value)}))
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split()[0])
    await reader.readexactly(length)
    return b" 200 " in head.partition(b"\r\n")[0]


async def wait_ready(connection: Connection) -> None:
    """Wait until the servers have a leader."""
    async with asyncio.timeout(_READY_SECONDS):
        while not await is_written(connection, b"/ready", b""):
            await asyncio.sleep(_RETRY_SECONDS)

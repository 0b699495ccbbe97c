"""The HTTP server by itself: what it adds to responses, and when a stream ends."""

import asyncio
from collections.abc import AsyncGenerator
from http import HTTPStatus

from priocast.network.address import Address
from priocast.runtime.admin.http_server import HttpRequest, HttpResponse, HttpServer
from runtime.admin.test_endpoint import get
from support.waiting import PATIENCE_SECONDS, run, wait_until


class Ticking:
    """Responds with a stream that never ends by itself, and knows when it has ended."""

    def __init__(self) -> None:
        self.ended = 0

    async def respond(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(HTTPStatus.OK, content_type="text/event-stream", chunks=self._ticks())

    async def _ticks(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"tick\n"
                await asyncio.sleep(0.01)
        finally:
            self.ended += 1


def test_a_stream_ends_when_its_client_goes_and_when_the_server_closes() -> None:
    async def test() -> None:
        ticking = Ticking()
        server = HttpServer(ticking.respond)
        address = await server.start(Address("127.0.0.1", 0))
        _, going = await asyncio.open_connection(*address)
        going.write(get("/events"))
        reader, staying = await asyncio.open_connection(*address)
        staying.write(get("/events"))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        assert b"Transfer-Encoding: chunked" in head
        assert b"Content-Security-Policy: default-src 'self'" in head
        await asyncio.wait_for(reader.readuntil(b"tick\n"), PATIENCE_SECONDS)
        going.transport.abort()
        await wait_until(lambda: ticking.ended == 1)
        await server.close()
        assert ticking.ended == 2
        staying.close()

    run(test)

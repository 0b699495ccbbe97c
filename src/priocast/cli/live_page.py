"""The live page of a group that a command runs: served from a thread while the command does its work."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic, sleep

from priocast.operations.group_console import GroupConsole
from priocast.runtime.admin.server import AdminServer

_POLL_SECONDS = 0.05


class LivePage:
    """A page that is being served at `url`."""

    def __init__(self, addresses: Sequence[str], listen: str) -> None:
        self._addresses = addresses
        self._listen = listen
        self._ended = asyncio.Event()
        self._started = Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: AdminServer | None = None
        self._error: Exception | None = None
        self._thread = Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """The address of the page."""
        assert self._server is not None
        return self._server.url

    def start(self) -> None:
        """Serve the page."""
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Serve it no longer."""
        if self._loop is not None and self._error is None:
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def wait_watched(self, seconds: float) -> bool:
        """Wait until somebody has the page open, at most this long; returns whether that is so."""
        assert self._server is not None
        deadline = monotonic() + seconds
        while not self._server.is_watched and monotonic() < deadline:
            sleep(_POLL_SECONDS)
        return self._server.is_watched

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            async with AdminServer(GroupConsole(self._addresses), self._listen) as self._server:
                self._started.set()
                await self._ended.wait()
        except Exception as error:
            self._error = error
            self._started.set()


@contextmanager
def live_page(addresses: Sequence[str], listen: str) -> Iterator[LivePage]:
    """Serve the page of the nodes at these admin addresses."""
    page = LivePage(addresses, listen)
    page.start()
    try:
        yield page
    finally:
        page.stop()

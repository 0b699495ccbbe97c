"""A feed: a member keeps the ordered messages on its disk, and gives them to readers that are not members.

    async with (
        priocast.join("tickets", member="a", delivery="safe", ...) as group,
        priocast.open_feed("tickets", member="a", directory="feed", address="127.0.0.1:9501") as feed,
    ):
        async for event in group:
            feed.take(event)
            ...

Positions are the same at all members, so a reader may ask any feed of the group. That holds for *safe*
delivery only: with agreed delivery, a member that drops out may have delivered what the others never will.
A member that was away asks the other feeds for what it missed.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from priocast.core.errors import InvalidOption, LogFault, PriocastError, TrimmedPosition, UnavailableFeed
from priocast.core.events import Delivery, Event, Evicted, ViewChange
from priocast.core.identity import check_name
from priocast.feed.feed_log import FeedLog
from priocast.feed.feed_reader import FeedReader
from priocast.feed.feed_server import FeedServer
from priocast.log.disk_directory import DiskDirectory
from priocast.log.entries import MessageEntry
from priocast.network.address import Address, is_loopback, parse_address
from priocast.network.security import TlsSecurity

log = logging.getLogger("priocast.feed")

KEEP_BYTES = 1024 * 1024 * 1024
_SALT_BYTES = 8
_FETCH_SECONDS = 1.0
_FETCH_ATTEMPTS = 10
_WRITTEN_SECONDS = 0.01


class Feed:
    """One member's feed; `open_feed` yields one. `address` is where readers find it."""

    def __init__(
        self,
        kept: FeedLog,
        server: FeedServer,
        address: Address,
        others: FeedReader | None,
    ) -> None:
        self._kept = kept
        self._server = server
        self._others = others
        self._waiting: deque[MessageEntry] = deque()
        self._view = self._end = self._joined_at = 0
        self._is_joining = True
        self._something_new = asyncio.Event()
        self._error: PriocastError | None = None
        self.address = address

    @property
    def range(self) -> tuple[int, int]:
        """The positions that can be read: from the first one, to before the second."""
        return self._kept.begin, self._kept.end

    def take(self, event: Event) -> None:
        """Keep what the group delivers: call it with every event, in order. It does not wait for the disk.

        Raises LogFault if what came before could not be kept.
        """
        if self._error is not None:
            raise self._error
        if isinstance(event, Delivery):
            self._waiting.append(_entry_of(event, self._view))
            self._end = event.position + 1
        elif isinstance(event, ViewChange):
            self._enter(event)
        elif isinstance(event, Evicted):
            self._is_joining = True
        self._something_new.set()

    def _enter(self, change: ViewChange) -> None:
        if change.reason.founded and self._kept.end > change.position:
            raise LogFault(
                "the group was founded again, and the feed has messages of the earlier group up to position "
                f"{self._kept.end:,}: keep its directory for readers of that group, and choose another one"
            )
        if self._is_joining:
            self._joined_at, self._is_joining = change.position, False
        self._view = change.view.number
        self._end = max(self._end, change.position)

    async def run(self) -> None:
        """Write what was taken, and fetch what was missed, until cancelled."""
        try:
            while True:
                await self._something_new.wait()
                self._something_new.clear()
                await self._catch_up(self._joined_at)
                messages = [message for message in self._waiting if message.position >= self._kept.end]
                end = self._end
                self._waiting.clear()
                if end > self._kept.end:
                    await asyncio.to_thread(self._kept.append, messages, end)
        except PriocastError as error:
            log.error("the feed ends at position %d: %s", self._kept.end, error)
            self._error = error

    async def _catch_up(self, joined_at: int) -> None:
        """Fetch what the group delivered while this member was away; if nobody has it, begin after it."""
        attempts = 0
        while self._kept.end < joined_at:
            try:
                await asyncio.to_thread(self._fetch, joined_at)
            except (TrimmedPosition, UnavailableFeed) as error:
                attempts += 1
                if attempts < _FETCH_ATTEMPTS and isinstance(error, UnavailableFeed) and self._others:
                    await asyncio.sleep(_FETCH_SECONDS)
                    continue
                if not self._kept.is_empty:
                    log.warning("the feed begins anew at position %d: %s", joined_at, error)
                await asyncio.to_thread(self._kept.start_at, joined_at)

    def _fetch(self, end: int) -> None:
        if self._others is None:
            raise UnavailableFeed("no other feeds are known")
        begin, _ = self._others.widest_range()
        if self._kept.is_empty and begin > self._kept.end:
            self._kept.start_at(min(begin, end))
        for part in self._others.read(self._kept.end, end):
            self._kept.append(part, part[-1].position + 1)
        if self._kept.end < end:
            self._kept.append([], end)

    async def written(self) -> None:
        """Wait until what was taken is on the disk, or cannot be."""
        while self._error is None and (self._waiting or self._end > self._kept.end):
            await asyncio.sleep(_WRITTEN_SECONDS)

    async def close(self) -> None:
        """End the connections of readers, and let another process use the directory."""
        await self._server.close()
        if self._others is not None:
            self._others.close()
        self._kept.close()


def _entry_of(delivery: Delivery, view: int) -> MessageEntry:
    message = delivery.message
    sender, level, number = message.id.sender, message.id.level, message.id.number
    return MessageEntry(delivery.position, view, sender, level, number, message.priority, message.payload)


class OpenFeed:
    """`open_feed` as an asynchronous context manager."""

    def __init__(
        self,
        group: str,
        member: str,
        directory: Path,
        address: Address,
        others: Sequence[str],
        tls: TlsSecurity | None,
        keep_bytes: int,
    ) -> None:
        self._names = group, member
        self._directory = directory
        self._address = address
        self._others = FeedReader(group, others, tls) if others else None
        self._tls = tls
        self._keep_bytes = keep_bytes
        self._feed: Feed | None = None
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Feed:
        salt = os.urandom(_SALT_BYTES)
        kept = FeedLog(DiskDirectory(self._directory), self._names, salt, self._keep_bytes)
        server = FeedServer(self._names[0], kept, self._tls)
        try:
            address = await server.open(self._address)
        except OSError as error:
            kept.close()
            raise InvalidOption(
                f"the feed cannot listen at {self._address}: {error.strerror or error}"
            ) from error
        self._feed = Feed(kept, server, address, self._others)
        self._running = asyncio.create_task(self._feed.run(), name="feed")
        return self._feed

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._feed is not None and self._running is not None
        await self._feed.written()
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running
        await self._feed.close()


def open_feed(
    group: str,
    *,
    member: str,
    directory: str | os.PathLike[str],
    address: str = "127.0.0.1:0",
    others: Sequence[str] = (),
    tls: TlsSecurity | None = None,
    keep_bytes: int = KEEP_BYTES,
) -> OpenFeed:
    """Keep the messages of a group for readers, as an asynchronous context manager that yields the `Feed`.

    - `group`, `member`: the names of the group and of this member. The group needs *safe* delivery.
    - `directory`: where the messages are kept; of this feed alone.
    - `address`: where readers find it. Beyond this machine, it needs `tls`.
    - `others`: the addresses of other feeds of the group, for what is delivered while this member is away.
    - `tls`: TLS, with the files of the member. Readers need a certificate of the group, in any role.
    - `keep_bytes`: about how much is kept; the oldest messages are trimmed.
    """
    check_name(group, "group")
    check_name(member, "member")
    listen = parse_address(address, any_port=True)
    if tls is None and not is_loopback(listen.host):
        raise InvalidOption(
            f"address is {address}, which other machines can reach: pass tls=, or use a loopback address"
        )
    if keep_bytes <= 0:
        raise InvalidOption(f"keep_bytes is {keep_bytes}: it must be positive")
    return OpenFeed(group, member, Path(directory), listen, others, tls, keep_bytes)

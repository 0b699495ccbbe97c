"""Looks for peers: each address is dialled until it answers, and again when the connection is lost.

Addresses that were configured are dialled for ever. One that was learnt from a process that dialled us is
forgotten when it leads nowhere for a while, or when the process is reached at a configured address anyway.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from priocast.core.errors import Rejected
from priocast.network.address import Address
from priocast.network.rejections import Reason
from priocast.network.security import reason_of
from priocast.network.tcp_connection import Dialled, Host

HANDSHAKE_SECONDS = 5.0
CLOSE_SECONDS = 2.0
LEARNT_MAX = 256
_LEARNT_SECONDS = 60.0
_REDIAL_SECONDS_FIRST = 0.02
_REDIAL_SECONDS_MAX = 1.0


class DiallingHost(Host, Protocol):
    """What a dialler asks of the process that it belongs to."""

    dialling: ssl.SSLContext | None

    def on_reached(self, connection: Dialled) -> bool: ...
    def on_unreached(self, connection: Dialled) -> None: ...


class Dialler:
    """Keeps a connection to whoever listens at one address."""

    def __init__(self, host: DiallingHost, address: Address, *, learnt: bool) -> None:
        self.address = address
        self.learnt = learnt
        self.connected = False
        self._host = host
        self._hurry = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._run())

    def hurry(self) -> None:
        """Whoever is there has just dialled us: it is up."""
        self._hurry.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        failing_since = loop.time()
        pause = _REDIAL_SECONDS_FIRST
        while True:
            connection = await self._dial()
            if connection is not None:
                stayed = await self._stay(connection)
                if stayed is None:
                    return
                if stayed:
                    failing_since = loop.time()
                if stayed > _REDIAL_SECONDS_MAX:
                    pause = _REDIAL_SECONDS_FIRST
            if self.learnt and loop.time() - failing_since > _LEARNT_SECONDS:
                return
            self._hurry.clear()
            await asyncio.sleep(_REDIAL_SECONDS_FIRST)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), pause)
            pause = min(2 * pause, _REDIAL_SECONDS_MAX)

    async def _dial(self) -> Dialled | None:
        """Connect and be welcomed; nobody there is no news, anything else that goes wrong is counted."""
        connection = Dialled(self._host, self.address, learnt=self.learnt)
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await self._connect(connection)
                await asyncio.wait(
                    (connection.welcomed, connection.lost), return_when=asyncio.FIRST_COMPLETED
                )
        except TimeoutError:
            if connection.made:
                connection.transport.abort()
                self._host.gate.note(Reason.TOO_SLOW, address=str(self.address))
            return None
        except OSError as error:
            self._note(error)
            return None
        except BaseException:
            if connection.made:
                connection.transport.abort()
            raise
        if connection.lost.done():
            self._note(connection.lost.result())
            return None
        return connection

    def _note(self, error: Exception | None) -> None:
        if isinstance(error, ssl.SSLError):
            self._host.gate.note(reason_of(error), str(error), address=str(self.address))

    async def _connect(self, connection: Dialled) -> None:
        loop = asyncio.get_running_loop()
        make: Callable[[], Dialled] = lambda: connection  # noqa: E731 - typed for mypy
        if self._host.dialling is None:
            await loop.create_connection(make, *self.address)
        else:
            await loop.create_connection(
                make,
                *self.address,
                ssl=self._host.dialling,
                ssl_handshake_timeout=2 * HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=CLOSE_SECONDS,
            )

    async def _stay(self, connection: Dialled) -> float | None:
        """Let the process use the connection; return for how many seconds it did, None if it need not be."""
        loop = asyncio.get_running_loop()
        try:
            if not self._host.on_reached(connection):
                connection.transport.close()
                return None
        except Rejected as error:
            connection.turn_away(error)
            return 0.0
        began = loop.time()
        self.connected = True
        await asyncio.wait((connection.lost,))  # which is not ours to cancel
        self.connected = False
        self._host.on_unreached(connection)
        return loop.time() - began


class Diallers:
    """All the addresses that a process dials; `own` are its own, which lead nowhere."""

    def __init__(self, host: DiallingHost, own: set[Address]) -> None:
        self._host = host
        self._own = own
        self._diallers: dict[Address, Dialler] = {}

    def add(self, address: Address, *, learnt: bool) -> None:
        """Dial an address from now on; one that is known already, without delay."""
        known = self._diallers.get(address)
        if known is not None:
            known.hurry()
        elif address not in self._own and (not learnt or self._has_room()):
            dialler = Dialler(self._host, address, learnt=learnt)
            self._diallers[address] = dialler
            dialler.task.add_done_callback(lambda task: self._ended(dialler, task))

    async def close(self) -> None:
        """Dial no more; connections that stand are left alone."""
        tasks = [dialler.task for dialler in self._diallers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _has_room(self) -> bool:
        """Whether one more address can be learnt; the oldest that leads nowhere makes room."""
        learnt = [dialler for dialler in self._diallers.values() if dialler.learnt]
        if len(learnt) < LEARNT_MAX:
            return True
        self._host.gate.note(Reason.TOO_MANY_ADDRESSES)
        for dialler in learnt:
            if not dialler.connected:
                del self._diallers[dialler.address]
                dialler.task.cancel()
                return True
        return False

    def _ended(self, dialler: Dialler, task: "asyncio.Task[None]") -> None:
        if self._diallers.get(dialler.address) is dialler:
            del self._diallers[dialler.address]
        if not task.cancelled():
            task.result()  # a fault of our own is not swallowed

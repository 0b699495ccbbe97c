"""Dials peers: each address is dialled until it answers, and again when the connection is lost.

Configured addresses are dialled forever. An address that was learnt from a process that dialled us is
forgotten if it does not answer in the time of a handshake (for a minute, if it did before), or if the process
is connected at a configured address anyway. Whoever dials us can cause dialling: how many addresses and how
often is limited.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from priocast.core.errors import Rejected
from priocast.network.address import Address
from priocast.network.dial_back import DialBackRate
from priocast.network.reachability import ITSELF, failure_of
from priocast.network.rejections import Reason
from priocast.network.security import reason_of
from priocast.network.tcp_connection import CLOSE_SECONDS, ConnectionOwner, DialledConnection

HANDSHAKE_SECONDS = 5.0
LEARNT_MAX = 256
LEARNT_BURST = 64
LEARNT_PER_SECOND = 32.0
_LEARNT_SECONDS = 60.0
_HURRY_SECONDS = 0.5
_REDIAL_SECONDS_FIRST = 0.02
_REDIAL_SECONDS_MAX = 1.0


class DiallingOwner(ConnectionOwner, Protocol):
    """What a dialler needs from its network."""

    dialling: ssl.SSLContext | None

    def on_reached(self, connection: DialledConnection) -> bool: ...
    def on_unreached(self, connection: DialledConnection) -> None: ...


class Dialler:
    """Maintains a connection to one address."""

    def __init__(self, owner: DiallingOwner, address: Address, *, learnt: bool) -> None:
        self.address = address
        self.learnt = learnt
        self.connected = False
        self.failure = ""
        self._owner = owner
        self._hurry = asyncio.Event()
        self._hurried_at = float("-inf")
        self.task = asyncio.get_running_loop().create_task(self._run())

    def hurry(self) -> None:
        """The process at this address has just dialled us: it is up, so dial it soon."""
        now = asyncio.get_running_loop().time()
        if now - self._hurried_at >= _HURRY_SECONDS:
            self._hurried_at = now
            self._hurry.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        failing_since, patience = loop.time(), min(HANDSHAKE_SECONDS, _LEARNT_SECONDS)
        pause = _REDIAL_SECONDS_FIRST
        while True:
            connection = await self._dial()
            if connection is not None:
                stayed = await self._stay(connection)
                if stayed is None:
                    return
                if stayed:
                    failing_since, patience = loop.time(), _LEARNT_SECONDS
                if stayed > _REDIAL_SECONDS_MAX:
                    pause = _REDIAL_SECONDS_FIRST
            if self.learnt and loop.time() - failing_since > patience:
                return
            self._hurry.clear()
            await asyncio.sleep(_REDIAL_SECONDS_FIRST)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), pause)
            pause = min(2 * pause, _REDIAL_SECONDS_MAX)

    async def _dial(self) -> DialledConnection | None:
        """Connect and wait for the welcome. A refused connection is expected; other failures are counted."""
        connection = DialledConnection(self._owner, self.address, learnt=self.learnt)
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await self._connect(connection)
                await asyncio.wait(
                    (connection.welcomed, connection.lost), return_when=asyncio.FIRST_COMPLETED
                )
        except TimeoutError:
            if connection.made:
                connection.transport.abort()
                self._owner.rejection_log.record(Reason.TOO_SLOW, address=str(self.address))
            self.failure = "no answer"
            return None
        except (OSError, ValueError) as error:  # ValueError: a host name that cannot be encoded
            error.__traceback__ = None  # it refers to the connection, which refers to the error
            self._note(error)
            return None
        except BaseException:
            if connection.made:
                connection.transport.abort()
            raise
        if connection.lost.done():
            self._note(connection.rejection or connection.lost.result())
            return None
        return connection

    def _note(self, error: Exception | None) -> None:
        self.failure = failure_of(error)
        if isinstance(error, ssl.SSLError):
            self._owner.rejection_log.record(reason_of(error), str(error), address=str(self.address))
        elif isinstance(error, ValueError):
            self._owner.rejection_log.record(Reason.INVALID_ADDRESS, str(error), address=str(self.address))

    async def _connect(self, connection: DialledConnection) -> None:
        loop = asyncio.get_running_loop()
        make: Callable[[], DialledConnection] = lambda: connection  # noqa: E731 - typed for mypy
        if self._owner.dialling is None:
            await loop.create_connection(make, *self.address)
        else:
            await loop.create_connection(
                make,
                *self.address,
                ssl=self._owner.dialling,
                ssl_handshake_timeout=2 * HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=CLOSE_SECONDS,
            )

    async def _stay(self, connection: DialledConnection) -> float | None:
        """Use the connection; return for how many seconds it lasted, None if it is not needed."""
        loop = asyncio.get_running_loop()
        try:
            if not self._owner.on_reached(connection):
                self.failure = ITSELF
                connection.close()
                return None
        except Rejected as error:
            self.failure = failure_of(error)
            connection.reject(error)
            return 0.0
        began = loop.time()
        self.connected = True
        self.failure = ""
        await asyncio.wait((connection.lost,))  # wait() does not cancel the future, which others use
        self.connected = False
        self._owner.on_unreached(connection)
        return loop.time() - began


class Diallers:
    """All addresses that a process dials; `own` are its own, which are not dialled.

    `failures` says why configured addresses were not reached.
    """

    def __init__(self, owner: DiallingOwner, own: set[Address]) -> None:
        self._owner = owner
        self._own = own
        self._diallers: dict[Address, Dialler] = {}
        self._failures = dict.fromkeys(own, ITSELF)
        self._rate = DialBackRate(LEARNT_BURST, LEARNT_PER_SECOND, time.monotonic)

    def add(self, address: Address, *, learnt: bool) -> None:
        """Dial an address from now on; if it is being dialled already, do so without delay."""
        known = self._diallers.get(address)
        if known is not None:
            known.hurry()
        elif address not in self._own and (not learnt or self._has_room(address.host)):
            dialler = Dialler(self._owner, address, learnt=learnt)
            self._diallers[address] = dialler
            dialler.task.add_done_callback(lambda task: self._ended(dialler, task))

    def drop(self, address: Address) -> None:
        """Do not dial an address any more, unless it is connected."""
        dialler = self._diallers.get(address)
        if dialler is not None and not dialler.connected:
            del self._diallers[address]
            dialler.task.cancel()

    @property
    def failures(self) -> dict[Address, str]:
        """Why addresses could not be reached, as far as it is known."""
        return self._failures | {address: each.failure for address, each in self._diallers.items()}

    async def close(self) -> None:
        """Stop dialling; open connections are not touched."""
        tasks = [dialler.task for dialler in self._diallers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _has_room(self, host: str) -> bool:
        """Whether one more address can be learnt; the oldest without a connection is dropped if needed."""
        if not self._rate.admit(host):
            self._owner.rejection_log.record(Reason.TOO_MANY_ADDRESSES, address=host)
            return False
        learnt = [dialler for dialler in self._diallers.values() if dialler.learnt]
        if len(learnt) < LEARNT_MAX:
            return True
        self._owner.rejection_log.record(Reason.TOO_MANY_ADDRESSES)
        for dialler in learnt:
            if not dialler.connected:
                self.drop(dialler.address)
                return True
        return False

    def _ended(self, dialler: Dialler, task: "asyncio.Task[None]") -> None:
        if self._diallers.get(dialler.address) is dialler:
            del self._diallers[dialler.address]
            if not dialler.learnt:
                self._failures[dialler.address] = dialler.failure
                if dialler.failure == ITSELF:
                    self._own.add(dialler.address)
        if not task.cancelled():
            task.result()  # raises what went wrong in the task

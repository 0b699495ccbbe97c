"""PySyncObj's ReplDict behind the same asynchronous call as ours, for `replicated_puts`."""

import asyncio
from collections.abc import ItemsView, Sequence

from pysyncobj import SyncObj, SyncObjConf
from pysyncobj.batteries import ReplDict

_READY_SECONDS = 20.0
_TICK_SECONDS = 0.001


class PeerDict:
    """One member's copy. PySyncObj works in a thread of its own and calls back there."""

    def __init__(self, own: str, others: Sequence[str], is_pipelined: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._dict = ReplDict()
        configuration = SyncObjConf(
            autoTickPeriod=0.05 if is_pipelined else _TICK_SECONDS,
            appendEntriesUseBatch=is_pipelined,
        )
        self._node = SyncObj(own, list(others), conf=configuration, consumers=[self._dict])

    async def wait_ready(self) -> None:
        """Wait until there is a leader and this member has its log."""
        async with asyncio.timeout(_READY_SECONDS):
            while not self._node.isReady():
                await asyncio.sleep(0.01)

    async def set(self, key: str, value: str) -> None:
        """Put, and wait for the answer; put again if there was no leader, or another one."""
        while await self._put(key, value):
            pass

    async def _put(self, key: str, value: str) -> int:
        """Why a put was not applied; 0 if it was."""
        answered: asyncio.Future[int] = self._loop.create_future()

        def on_result(_result: object, error: int) -> None:
            self._loop.call_soon_threadsafe(answered.set_result, error)

        self._dict.set(key, value, callback=on_result)
        return await answered

    async def wait_keys(self, keys: Sequence[str]) -> None:
        """Wait until this member's copy has these keys, and so everything before them."""
        async with asyncio.timeout(_READY_SECONDS):
            while not all(key in self._dict for key in keys):
                await asyncio.sleep(0.01)

    def items(self) -> ItemsView[str, str]:
        """What this member's copy has."""
        found: ItemsView[str, str] = self._dict.rawData().items()
        return found

    def close(self) -> None:
        """Leave."""
        self._node.destroy()

"""The admin endpoint of a program's own node, and the log of its groups, for as long as it is entered."""

import asyncio
from types import TracebackType

from priocast.core.errors import InvalidAddress
from priocast.runtime.admin.endpoint import Admin
from priocast.runtime.admin.group_log import GroupLogger
from priocast.runtime.node import Node


class AdminService:
    """What `Node.serve_admin` returns; `url` is the address of the live page, once it is entered."""

    def __init__(self, node: Node, listen: str, *, allow_remote: bool) -> None:
        if not isinstance(listen, str):
            raise InvalidAddress(f"admin must be an address like '127.0.0.1:9401', not {listen!r}")
        self._admin = Admin(node, listen, allow_remote=allow_remote)
        self._logger = GroupLogger(node)
        self._logging: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address of the live page."""
        return self._admin.url

    async def __aenter__(self) -> "AdminService":
        await self._admin.__aenter__()
        self._logging = asyncio.create_task(self._logger.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._logging is not None:
            self._logging.cancel()
        self._logger.poll()
        await self._admin.__aexit__(kind, error, trace)

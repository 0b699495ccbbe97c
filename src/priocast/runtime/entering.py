"""Entering with `await` instead of `async with`: in a notebook, a block would end with its cell.

group = await priocast.join("tickets", member="a", listen="127.0.0.1:7401", peers=[...])
await group.leave()
"""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from priocast.core.errors import InvalidInput

Leave = Callable[[], Awaitable[None]]


class Leavable(Protocol):
    """What can be told how it is left."""

    def left_by(self, leave: Leave) -> None: ...


L = TypeVar("L", bound=Leavable)


class Enterable(Generic[L]):
    """An asynchronous context manager that `await` enters, too; what it yields then knows how it is left."""

    @abstractmethod
    async def __aenter__(self) -> L: ...

    @abstractmethod
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __await__(self) -> Generator[Any, None, L]:
        return self._enter().__await__()

    async def _enter(self) -> L:
        entered = await self.__aenter__()
        entered.left_by(partial(self.__aexit__, None, None, None))
        return entered


async def left(leave: Leave | None, what: str, call: str) -> None:
    """Leave what was entered with `await`; raise if it was not."""
    if leave is None:
        raise InvalidInput(
            f"the {what} was entered with `async with`, whose end leaves it: use `await` without a block to "
            f"{call} it yourself"
        )
    await leave()

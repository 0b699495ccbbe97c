"""Another order for a group that runs: what the admin endpoint is asked for, and who asks it.

Whoever can talk to the endpoint from the same machine may ask; from another machine nobody may, whatever is
allowed to be read there. The request is a `PUT`, which no web page can make a browser send to another site.
"""

import asyncio

import msgspec

from priocast.core.errors import DeadlineExceeded, InvalidInput
from priocast.core.starvation import parse_starvation
from priocast.network.address import Address, parse_address
from priocast.operations.probe import PROBE_SECONDS, read_answer, request, status_at
from priocast.runtime.group import Group
from priocast.runtime.node import Node
from priocast.runtime.status import Status

_LOOK_SECONDS = 0.05


class OrderChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a group shall be ordered; None leaves it as it is."""

    group: str
    order: str
    prioritised: bool | None = None
    starvation: str | None = None


def change_order(node: Node, body: bytes) -> str:
    """Have a group of the node's ordered otherwise, as a request's body says; return what was understood."""
    try:
        change = msgspec.json.decode(body, type=OrderChange)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"this is no change of order: {error}") from error
    driver = node.groups.get(change.group)
    if driver is None:
        raise InvalidInput(f"{node.name} is not in the group {change.group!r}")
    starvation = None if change.starvation is None else parse_starvation(change.starvation)
    Group(driver).change_order(change.order, prioritised=change.prioritised, starvation=starvation)
    return f"{change.group} will be ordered by {change.order}"


async def ask_for_order(
    where: str, change: OrderChange, timeout_seconds: float = PROBE_SECONDS
) -> tuple[Status, float]:
    """Ask a node for another order, and wait for the view that has it; return how that is, and how long."""
    address = parse_address(where)
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(timeout_seconds):
            answer = await request(address, "PUT", "/order", msgspec.json.encode(change))
            read_answer(answer, "202")
            while not _is_done(status := await _status_of(address, change.group), change):
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise DeadlineExceeded(
            f"{change.group} was asked to be ordered by {change.order}, and is not after "
            f"{timeout_seconds:g} s: is a majority of its members there (priocast probe {where})?"
        ) from None
    except OSError as error:
        raise InvalidInput(f"nobody answers at {where}: {error.strerror or error}") from error
    return status, loop.time() - began


async def _status_of(address: Address, group: str) -> Status:
    status = await status_at(address)
    return next(each for each in status.groups if each.group == group)


def _is_done(status: Status, change: OrderChange) -> bool:
    same = change.prioritised is None or status.prioritised == change.prioritised
    return status.order == change.order and same and status.state != "changing_view"

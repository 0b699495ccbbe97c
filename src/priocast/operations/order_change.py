"""Changes the order of a running group: the request to the admin endpoint, and both ends of it.

The request carries the token of the node, which only the user that runs the node can read. It is accepted
from the node's own machine only, even if other machines may read there.
"""

import asyncio
from pathlib import Path

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import DeadlineExceeded, ForeignFrame, InvalidInput
from priocast.core.starvation import parse_starvation
from priocast.network.address import Address, parse_address
from priocast.operations.admin_token import read_token
from priocast.operations.node_probe import PROBE_SECONDS, read_response, request, status_at
from priocast.runtime.group import Group
from priocast.runtime.node import Node
from priocast.runtime.status import Status

_POLL_SECONDS = 0.05


class OrderChangeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new order of a group; None leaves an option unchanged."""

    group: str
    order: str
    prioritised: bool | None = None
    starvation: str | None = None


_decode_request = msgspec.json.Decoder(OrderChangeRequest).decode


def change_order(node: Node, body: bytes) -> str:
    """Change the order of a group of this node, as the body of a request says; return a confirmation."""
    try:
        change = decode(_decode_request, body, "the caller", "an order change request")
    except ForeignFrame as error:
        raise InvalidInput(f"not an order change request: {error}") from error
    driver = node.groups.get(change.group)
    if driver is None:
        groups = ", ".join(node.groups) or "no group"
        raise InvalidInput(f"{node.name} is not in the group {change.group!r}: it is in {groups}")
    starvation = None if change.starvation is None else parse_starvation(change.starvation)
    Group(driver).change_order(change.order, prioritised=change.prioritised, starvation=starvation)
    return f"{change.group} will be ordered by {change.order}"


async def request_order_change(
    where: str,
    change: OrderChangeRequest,
    timeout_seconds: float = PROBE_SECONDS,
    token_file: Path | None = None,
) -> tuple[Status, float]:
    """Ask a node to change the order; return its status once the view has it, and how long that took."""
    address = parse_address(where)
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        async with asyncio.timeout(timeout_seconds):
            await status_at(address)  # a node must reply, before its token is looked for
            headers = (
                "Content-Type: application/json",
                f"Authorization: Bearer {read_token(address, token_file)}",
            )
            response = await request(address, "POST", "/order", msgspec.json.encode(change), headers)
            read_response(response, "202")
            while not _is_done(status := await _status_of(address, change.group), change):
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise DeadlineExceeded(
            f"timed out after {timeout_seconds:g} s: {change.group} is not ordered by {change.order} yet; "
            f"check that a majority of its members is running (priocast probe {where})"
        ) from None
    except OSError as error:
        raise InvalidInput(f"no node replies at {where}: {error.strerror or error}") from error
    return status, loop.time() - started


async def _status_of(address: Address, group: str) -> Status:
    status = await status_at(address)
    for each in status.groups:
        if each.group == group:
            return each
    raise InvalidInput(f"{status.node} has left the group {group!r}")


def _is_done(status: Status, change: OrderChangeRequest) -> bool:
    prioritised = status.prioritised if change.prioritised is None else change.prioritised
    starvation = status.starvation if change.starvation is None else str(parse_starvation(change.starvation))
    wanted = (change.order, prioritised, starvation)
    return (status.order, status.prioritised, status.starvation) == wanted and status.state == "active"

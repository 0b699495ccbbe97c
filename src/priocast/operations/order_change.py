"""Asks a node to change the order of a running group, and waits until it has changed.

The request carries the token of the node, which only the user that runs the node can read. It is accepted
from the node's own machine only, even if other machines may read there.
"""

import asyncio
from pathlib import Path

import msgspec

from priocast.core.errors import DeadlineExceeded, InvalidInput
from priocast.core.starvation import parse_starvation
from priocast.network.address import Address, parse_address
from priocast.operations.http_client import request
from priocast.operations.node_probe import PROBE_SECONDS, status_at
from priocast.runtime.admin.order_request import OrderChangeRequest
from priocast.runtime.admin.token_file import read_token
from priocast.runtime.status import Status

_POLL_SECONDS = 0.05


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
            await submit_change(address, change, read_token(address, token_file))
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


async def submit_change(address: Address, change: OrderChangeRequest, token: str) -> str:
    """Ask a node to change the order; return its confirmation. The change takes place with the next view."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}".strip()}
    body = await request(address, "POST", "/order", msgspec.json.encode(change), headers, expected=202)
    return body.decode(errors="replace").strip()


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

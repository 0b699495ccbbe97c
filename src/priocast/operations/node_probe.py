"""Queries the status of nodes and derives problems from the replies."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import DeadlineExceeded, ForeignFrame, PriocastError
from priocast.core.view import View
from priocast.network.address import Address, parse_address
from priocast.operations.http_client import request
from priocast.runtime.admin.node_status import NodeStatus
from priocast.runtime.status import Status

PROBE_SECONDS = 3.0
_HEALTHY = ("active", "changing_view", "state_transfer")


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """The reply from one address: a status, or the problem that prevented it."""

    address: str
    status: NodeStatus | None = None
    problem: str = ""


async def ask_all(addresses: Sequence[str], timeout_seconds: float = PROBE_SECONDS) -> list[Probed]:
    """Query all addresses concurrently."""
    parsed = [parse_address(text) for text in addresses]
    return list(await asyncio.gather(*(_probe(address, timeout_seconds) for address in parsed)))


async def probe_all(addresses: Sequence[str], timeout_seconds: float = PROBE_SECONDS) -> list[Probed]:
    """Query all addresses concurrently; raise if no node replies."""
    probed = await ask_all(addresses, timeout_seconds)
    if all(each.status is None for each in probed):
        problems = "; ".join(f"{each.address}: {each.problem}" for each in probed)
        raise DeadlineExceeded(
            f"no node replies ({problems}): check that the nodes are running and that these are their admin "
            "addresses (--admin, or listen under [node.admin])"
        )
    return probed


def problems_of(probed: Sequence[Probed]) -> list[str]:
    """The problems found, one sentence each."""
    found = [f"{each.address} does not reply: {each.problem}" for each in probed if each.status is None]
    for group, statuses in by_group(probed).items():
        found += [
            f"{group}: {status.member} is {status.state}"
            for status in statuses
            if status.state not in _HEALTHY
        ]
        found += [
            f"{group}: {peer.member} is heard by {status.member}, but has acknowledged nothing for "
            f"{peer.unacknowledged_ms / 1000:.1f} s: frames do not get through"
            for status in statuses
            for peer in status.peers
            if peer.unacknowledged_ms
        ]
        found += [f"{group}: {problem}" for status in statuses for problem in status.storage_problems]
        found += _disagreement(group, statuses)
    return found


def by_group(probed: Sequence[Probed]) -> dict[str, list[Status]]:
    """The statuses by group, from all nodes that are in it."""
    groups: dict[str, list[Status]] = defaultdict(list)
    for each in probed:
        for status in each.status.groups if each.status else ():
            groups[status.group].append(status)
    return dict(groups)


def _disagreement(group: str, statuses: list[Status]) -> list[str]:
    views: dict[View, list[str]] = defaultdict(list)
    for status in statuses:
        if status.view is not None:
            views[status.view].append(status.member)
    if len(views) < 2:
        return []
    details = "; ".join(
        f"{' and '.join(members)} in view {view.number} ({', '.join(each.name for each in view.members)})"
        for view, members in views.items()
    )
    return [f"{group}: members are in different views: {details}"]


async def _probe(address: Address, timeout_seconds: float) -> Probed:
    try:
        async with asyncio.timeout(timeout_seconds):
            return Probed(address=str(address), status=await status_at(address))
    except TimeoutError:
        return Probed(address=str(address), problem=f"no reply within {timeout_seconds:g} s")
    except OSError as error:
        return Probed(address=str(address), problem=os.strerror(error.errno) if error.errno else str(error))
    except PriocastError as error:
        return Probed(address=str(address), problem=str(error))


_decode_status = msgspec.json.Decoder(NodeStatus).decode


async def status_at(address: Address) -> NodeStatus:
    """The status of the node at an admin address."""
    body = await request(address, "GET", "/status")
    try:
        return decode(_decode_status, body, address, "a status")
    except ForeignFrame as error:
        raise ForeignFrame(f"not a Priocast node, or one of another version: {error}") from error

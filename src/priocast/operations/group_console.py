"""The live page of a whole group: follows the nodes while somebody watches, and passes their updates on.

It runs on the user's machine and connects to the admin addresses of the nodes, as `priocast probe` does. An
order is changed at a node of this machine, whose token this user can read.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import msgspec

from priocast.core.errors import ForeignFrame, InvalidInput, PriocastError
from priocast.network.address import Address, is_loopback, parse_address
from priocast.operations.http_client import responding
from priocast.operations.node_probe import Probed, ask_all
from priocast.operations.order_change import submit_change
from priocast.runtime.admin.http_server import HttpResponse
from priocast.runtime.admin.live_updates import LiveNode, PageUpdate
from priocast.runtime.admin.order_request import read_order_request
from priocast.runtime.admin.token_file import read_token

_RETRY_SECONDS = 0.5
_CONNECT_SECONDS = 5.0
_UPDATE_BYTES_MAX = 4 * 1024 * 1024
_PENDING_MAX = 64

_decode_update = msgspec.json.Decoder(PageUpdate).decode


class GroupConsole:
    """The page of the nodes at these addresses."""

    documents: Mapping[str, Callable[[], HttpResponse]] = {}

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = [parse_address(text) for text in addresses]
        self._pending: list[msgspec.Raw] = []
        self._following: list[asyncio.Task[None]] = []
        self.title = ", ".join(addresses)

    def start(self) -> None:
        """Follow the nodes."""
        self._following = [asyncio.create_task(self._follow(address)) for address in self._addresses]

    def stop(self) -> None:
        """Follow them no longer."""
        for task in self._following:
            task.cancel()
        self._following, self._pending = [], []

    def gather(self) -> bytes:
        """What came from the nodes since the last time, in JSON."""
        pending, self._pending = self._pending, []
        return msgspec.json.encode(PageUpdate(nodes=pending))

    async def change_order(self, body: bytes) -> str:
        """Have a node of this machine change the order of one of its groups."""
        change = read_order_request(body)
        own = [address for address in self._addresses if is_loopback(address.host)]
        problems = []
        for probed in await ask_all([str(address) for address in own]):
            if _is_in(probed, change.group):
                address = parse_address(probed.address)
                try:
                    return await submit_change(address, change, read_token(address))
                except PriocastError as error:
                    problems.append(str(error))
        raise InvalidInput(
            "; ".join(problems)
            or f"no node of this machine is in the group {change.group!r}: "
            "an order is changed on the machine of a member"
        )

    async def _follow(self, address: Address) -> None:
        """Take the updates of one node; while it does not reply, say why, and try again."""
        while True:
            try:
                async for node in _updates(address):
                    self._add(node)
                problem = "the node ended the updates"
            except (OSError, PriocastError) as error:
                problem = str(error)
            except TimeoutError:
                problem = f"no reply within {_CONNECT_SECONDS:g} s"
            self._add(msgspec.Raw(msgspec.json.encode(LiveNode(address=str(address), problem=problem))))
            await asyncio.sleep(_RETRY_SECONDS)

    def _add(self, node: msgspec.Raw) -> None:
        """Keep an update until the page is sent the next one; more than it can show are not kept."""
        if len(self._pending) < _PENDING_MAX:
            self._pending.append(node)


def _is_in(probed: Probed, group: str) -> bool:
    return probed.status is not None and any(each.group == group for each in probed.status.groups)


async def _updates(address: Address) -> AsyncIterator[msgspec.Raw]:
    """What a node sends to those who watch it."""
    async with asyncio.timeout(_CONNECT_SECONDS) as deadline, responding(address, "GET", "/events") as reply:
        status, chunks = reply
        if status != 200:
            raise ForeignFrame(f"not a Priocast node with a live page: it replied with status {status}")
        deadline.reschedule(None)
        buffer = b""
        async for chunk in chunks:
            *events, buffer = (buffer + chunk).split(b"\n\n")
            if len(buffer) > _UPDATE_BYTES_MAX:
                raise ForeignFrame(f"an update exceeds {_UPDATE_BYTES_MAX:,} bytes")
            for event in events:
                for node in _nodes_in(event):
                    yield _named(node, address)


def _nodes_in(event: bytes) -> list[msgspec.Raw]:
    name, _, data = event.partition(b"\n")
    if name != b"event: update":
        return []
    try:
        return _decode_update(data.removeprefix(b"data: ")).nodes
    except msgspec.MsgspecError as error:
        raise ForeignFrame(f"not an update of a Priocast node: {error}") from error


def _named(node: msgspec.Raw, address: Address) -> msgspec.Raw:
    """The update under the address that the user gave: what the node calls itself may be ambiguous."""
    fields = msgspec.json.decode(node, type=dict[str, msgspec.Raw])
    return msgspec.Raw(msgspec.json.encode(fields | {"address": str(address)}))

"""The request to change the order of a running group, and how a node carries it out."""

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import ForeignFrame, InvalidInput
from priocast.core.starvation import parse_starvation
from priocast.runtime.group import Group
from priocast.runtime.node import Node


class OrderChangeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new order of a group; None leaves an option unchanged."""

    group: str
    order: str
    prioritised: bool | None = None
    starvation: str | None = None


_decode_request = msgspec.json.Decoder(OrderChangeRequest).decode


def read_order_request(body: bytes) -> OrderChangeRequest:
    """The request in a body."""
    try:
        return decode(_decode_request, body, "the caller", "an order change request")
    except ForeignFrame as error:
        raise InvalidInput(f"not an order change request: {error}") from error


def change_order(node: Node, body: bytes) -> str:
    """Change the order of a group of this node, as the body of a request says; return a confirmation."""
    change = read_order_request(body)
    driver = node.groups.get(change.group)
    if driver is None:
        groups = ", ".join(node.groups) or "no group"
        raise InvalidInput(f"{node.name} is not in the group {change.group!r}: it is in {groups}")
    starvation = None if change.starvation is None else parse_starvation(change.starvation)
    Group(driver).change_order(change.order, prioritised=change.prioritised, starvation=starvation)
    return f"{change.group} will be ordered by {change.order}"

"""The status of a node: that of each of its groups."""

from functools import cache
from importlib.metadata import version

import msgspec

from priocast.runtime.node import Node
from priocast.runtime.status import Status, status_of


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A node and all its groups at one moment."""

    node: str
    version: str
    groups: list[Status]


def node_status(node: Node) -> NodeStatus:
    """The current status. Call it on the event loop of the node, where nothing changes meanwhile."""
    groups = [status_of(driver) for driver in node.groups.values()]
    return NodeStatus(node=node.name, version=_version(), groups=groups)


@cache
def _version() -> str:
    """The version of Priocast, read once: finding it takes half a millisecond."""
    return version("priocast")

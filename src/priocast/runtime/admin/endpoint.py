"""The admin endpoint of a node: the live page, `GET /status`, `GET /metrics`, `POST /order`.

It runs on the event loop of the node: a status is read between two turns of the members, so it needs no lock
and is always consistent. Who may read, and who may change something, is in `access.py`.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus

import msgspec

from priocast.runtime.admin.http_server import HttpResponse
from priocast.runtime.admin.live_updates import NodeUpdates
from priocast.runtime.admin.node_status import node_status
from priocast.runtime.admin.order_request import change_order
from priocast.runtime.admin.server import AdminServer
from priocast.runtime.node import Node


class NodePage(NodeUpdates):
    """The page of one node, and what is served beside it."""

    def __init__(self, node: Node, address: str) -> None:
        super().__init__(node, address)
        self._node = node
        self.title = node.name
        self.documents: Mapping[str, Callable[[], HttpResponse]] = {
            "/status": self._status,
            "/metrics": self._metrics,
        }

    async def change_order(self, body: bytes) -> str:
        """Change the order of a group of this node."""
        return change_order(self._node, body)

    def _status(self) -> HttpResponse:
        body = msgspec.json.encode(node_status(self._node))
        return HttpResponse(HTTPStatus.OK, body, "application/json")

    def _metrics(self) -> HttpResponse:
        from priocast.runtime.admin.metrics import CONTENT_TYPE, exposition  # takes 30 ms to import

        return HttpResponse(HTTPStatus.OK, exposition(self._node), CONTENT_TYPE)


class Admin(AdminServer):
    """Serves the admin endpoint of one node, as an asynchronous context manager."""

    def __init__(self, node: Node, listen: str, *, allow_remote: bool = False) -> None:
        super().__init__(NodePage(node, listen), listen, allow_remote=allow_remote)

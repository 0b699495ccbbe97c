"""The server of a live page: its files, its feed, the change of an order, and what else its owner serves.

A node serves one at its admin address (`endpoint.py`), and `priocast console` serves one for a whole group.
It runs on the event loop of its owner: what it reads is consistent and needs no lock.
"""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib.resources import files
from types import TracebackType
from typing import Protocol, Self

import msgspec

from priocast.core.errors import PriocastError
from priocast.protocols import all_orders
from priocast.runtime.admin.access import AccessRules
from priocast.runtime.admin.admin_address import check_admin_address
from priocast.runtime.admin.http_server import (
    HttpRequest,
    HttpResponse,
    HttpServer,
    RequestRejected,
)
from priocast.runtime.admin.live_feed import LiveFeed, LiveSource
from priocast.runtime.admin.token_file import TokenFile

PAGE_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/strip.js": ("strip.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_CHANGE_PATH = "/order"

log = logging.getLogger("priocast.node")


class PageOwner(LiveSource, Protocol):
    """Whose page it is: `title` names it, `documents` are served beside the page, by their paths."""

    title: str
    documents: Mapping[str, Callable[[], HttpResponse]]

    async def change_order(self, body: bytes) -> str: ...


class PageGreeting(msgspec.Struct, frozen=True, kw_only=True):
    """What a page is told first. `token_file` is empty if nothing can be changed from where it is shown."""

    title: str
    orders: list[str]
    token_file: str


class AdminServer:
    """Serves the page of its owner, as an asynchronous context manager.

    `address` is where it listens: with port 0, another one once it is entered.
    """

    def __init__(self, owner: PageOwner, listen: str, *, allow_remote: bool = False) -> None:
        self.address = check_admin_address(listen, allow_remote=allow_remote, any_port=True)
        self._owner = owner
        self._allow_remote = allow_remote
        self._http = HttpServer(self._respond)
        self._feed = LiveFeed(owner)
        self._token: TokenFile | None = None
        self._rules: AccessRules | None = None

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{self.address}/"

    @property
    def is_watched(self) -> bool:
        """Whether somebody has the page open."""
        return self._feed.watchers > 0

    async def __aenter__(self) -> Self:
        self.address = await self._http.start(self.address)
        try:
            self._token = TokenFile(self.address)
        except (OSError, PriocastError) as error:
            log.warning("the order cannot be changed over the admin endpoint: %s", error)
        token = self._token.token if self._token else None
        self._rules = AccessRules(self.address, token, allow_remote=self._allow_remote)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()
        self._feed.close()
        if self._token is not None:
            self._token.remove()

    async def _respond(self, request: HttpRequest) -> HttpResponse:
        assert self._rules is not None, "requests come after the start"
        self._rules.check(request)
        if request.method != "GET":
            return await self._change(request)
        if request.path in PAGE_FILES:
            name, content_type = PAGE_FILES[request.path]
            body = files("priocast.runtime.admin").joinpath("page", name).read_bytes()
            return HttpResponse(HTTPStatus.OK, body, content_type)
        if request.path == "/events":
            return self._watch(request, self._rules)
        if (document := self._owner.documents.get(request.path)) is not None:
            return document()
        paths = ", ".join(["/", "/events", *self._owner.documents])
        raise RequestRejected(HTTPStatus.NOT_FOUND, f"the paths for GET are {paths}")

    def _watch(self, request: HttpRequest, rules: AccessRules) -> HttpResponse:
        if self._feed.is_full:
            raise RequestRejected(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{self._feed.watchers} pages are open already: close one"
            )
        may_change = self._token is not None and rules.may_change(request)
        greeting = PageGreeting(
            title=self._owner.title,
            orders=all_orders(),
            token_file=str(self._token.path) if self._token and may_change else "",
        )
        events = self._feed.watch(msgspec.json.encode(greeting))
        return HttpResponse(HTTPStatus.OK, content_type="text/event-stream", chunks=events)

    async def _change(self, request: HttpRequest) -> HttpResponse:
        if request.path != _CHANGE_PATH:
            raise RequestRejected(HTTPStatus.NOT_FOUND, f"the only path for POST is {_CHANGE_PATH}")
        try:
            accepted = await self._owner.change_order(request.body)
        except PriocastError as error:
            return HttpResponse(HTTPStatus.UNPROCESSABLE_ENTITY, f"{error}\n".encode())
        return HttpResponse(HTTPStatus.ACCEPTED, f"{accepted}\n".encode())

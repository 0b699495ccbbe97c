"""Who may read at an admin endpoint, and who may change something.

Everybody who can connect may read names, addresses and load; therefore an endpoint listens on a loopback
address unless the user allows otherwise. A browser may read for the endpoint's own page only: a request is
rejected if its `Host` is not the endpoint's own, which happens if a site's host name is made to point here
(DNS rebinding), if its `Origin` is another one, or if the browser says that another site caused it. A change
also comes from this machine, with the token of the endpoint, which only its user can read, as JSON.
"""

from hmac import compare_digest
from http import HTTPStatus

from priocast.network.address import Address, is_loopback
from priocast.runtime.admin.http_server import HttpRequest, RequestRejected

_OWN_SITES = ("", "same-origin", "none")


class AccessRules:
    """The rules of the endpoint at one address; without a `token` nothing can be changed."""

    def __init__(self, address: Address, token: str | None, *, allow_remote: bool) -> None:
        self._address = address
        self._token = token
        self._allow_remote = allow_remote

    def check(self, request: HttpRequest) -> None:
        """Raise `RequestRejected` if this request must not be served, whatever it asks for."""
        problem = self._problem_of_origin(request)
        if not problem and request.method != "GET":
            problem = self._problem_of_change(request)
        if problem:
            raise RequestRejected(HTTPStatus.FORBIDDEN, problem)
        if request.method != "GET" and _media_type(request) != "application/json":
            raise RequestRejected(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json"
            )

    def may_change(self, request: HttpRequest) -> bool:
        """Whether a change from where this request comes from would be accepted, with the token."""
        return self._token is not None and is_loopback(request.peer)

    def _problem_of_origin(self, request: HttpRequest) -> str:
        host = request.headers.get("host", "")
        may_be_any = self._allow_remote and request.method == "GET"
        if not may_be_any and not self._is_own(_host_name(host)):
            return f"the Host must be the endpoint's own: {self._address.host}, 127.0.0.1, [::1] or localhost"
        if request.headers.get("origin", f"http://{host}") != f"http://{host}":
            return "requests from web pages of other sites (with another Origin) are not served"
        is_visit = request.path == "/" and request.headers.get("sec-fetch-mode") == "navigate"
        if request.headers.get("sec-fetch-site", "") not in _OWN_SITES and not is_visit:
            return "requests from web pages of other sites are not served"
        return ""

    def _problem_of_change(self, request: HttpRequest) -> str:
        if not is_loopback(request.peer):
            return "changes are accepted from the node's own machine only"
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else ""
        if self._token is None or not compare_digest(given.encode(), self._token.encode()):
            return "a change needs the token of this node, as Authorization: Bearer"
        return ""

    def _is_own(self, host: str) -> bool:
        return is_loopback(host) or host == self._address.host


def _host_name(header: str) -> str:
    """The host in a Host header, without its port."""
    host, _, port = header.rpartition(":")
    name = host if port.isdecimal() and host else header
    return name.removeprefix("[").removesuffix("]")


def _media_type(request: HttpRequest) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()

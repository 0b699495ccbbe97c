"""Token requests: how the token finds the members that have something to order.

A member that has something for the token, and does not have the token, announces that to all. The token
carries what its holder knows about the others.
"""

from collections.abc import Iterable

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.priority import class_of
from priocast.core.view import View
from priocast.protocols.flow.grants import Grants
from priocast.protocols.ring.token_packets import NOTHING, TokenRequest


class TokenRequests:
    """What each member has for the token, as far as this one knows."""

    def __init__(self, me: ProcessId, view: View) -> None:
        self._me = me
        self._of = dict.fromkeys(view.members, TokenRequest())

    def of_all(self) -> tuple[TokenRequest, ...]:
        """All of them, for the token to carry."""
        return tuple(self._of.values())

    def level_of(self, member: ProcessId) -> int:
        """The level of what a member has for the token, or `NOTHING`."""
        return self._of[member].level

    def requesting(self, members: Iterable[ProcessId]) -> list[ProcessId]:
        """Those of the members that have something for the token."""
        return [member for member in members if self._of[member].level != NOTHING]

    def first_with_room(self, members: Iterable[ProcessId], grants: Grants) -> ProcessId | None:
        """The first of the members that has something for the token for which there is room."""
        for member in members:
            level = self._of[member].level
            if level != NOTHING and grants.room(level) > 0:
                return member
        return None

    def update_own(self, level: int) -> None:
        """This member passes the token on, and has this left for it."""
        self._of[self._me] = TokenRequest(self._of[self._me].number + 1, level)

    def next_own(self, level: int) -> TokenRequest | None:
        """The request to send if this member has something for the token; None if it was sent before.

        It is sent again if something more urgent has arrived for which there may be more room.
        """
        requested = self._of[self._me].level
        if level == NOTHING or (requested != NOTHING and class_of(level) <= class_of(requested)):
            return None
        self.update_own(level)
        return self._of[self._me]

    def learn(self, member: ProcessId, request: TokenRequest) -> None:
        """Note a member's request unless a later one is known: the token may have been faster."""
        if request.number > self._of[member].number:
            self._of[member] = request

    def learn_all(self, sender: ProcessId, requests: tuple[TokenRequest, ...]) -> None:
        """Note the requests that the token carried."""
        if len(requests) != len(self._of):
            raise PeerFault(f"{sender} passes a token with the requests of {len(requests)} members")
        for member, request in zip(self._of, requests, strict=True):
            if member == self._me and request.number > self._of[member].number:
                raise PeerFault(f"{sender} passes a token with a request that {member} never sent")
            self.learn(member, request)

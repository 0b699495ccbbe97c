"""The ring: one token moves from member to member, and its holder assigns positions.

The token carries the next position. Links are FIFO between two members only, so it may overtake the packets
that assigned the positions before: it is accepted only when all messages below its position are here. Then
the holder knows what is ordered, and how much room is left.
"""

from collections.abc import Container

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols.ring.token_packets import Token

WAITED_NS_MAX = 1 << 60
"""No message waits for years: what a token says is cut here, so that the sums of members stay in range."""


class Ring:
    """The token as one member sees it; the view's coordinator has it first.

    `position` is the next position to assign, or None while another member has the token. `others` are the
    other members along the ring, from the successor on.
    """

    def __init__(self, me: ProcessId, view: View, position: int) -> None:
        rank = view.members.index(me)
        self._me = me
        self._successors = dict(zip(view.members, view.members[1:] + view.members[:1], strict=True))
        self.others = view.members[rank + 1 :] + view.members[:rank]
        self.position = position if me == view.coordinator else None
        self._token: Token | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether another member has the token, and it was not received here."""
        return self.position is None and self._token is None

    def successor(self, member: ProcessId) -> ProcessId:
        """The next member along the ring."""
        return self._successors[member]

    def reachable(self, blocked: Container[ProcessId]) -> list[ProcessId]:
        """The others along the ring whose links are not full."""
        return [member for member in self.others if member not in blocked]

    def receive(self, sender: ProcessId, token: Token, position_next: int) -> None:
        """The token arrived; it is not accepted yet."""
        if self._token is not None or self.position is not None:
            raise PeerFault(f"{sender} passes a second token to {self._me}")
        if token.position < position_next:
            raise PeerFault(f"{sender} passes a token for {token.position}; {position_next} is next")
        self._token = token

    def accept(self, position_next: int) -> None:
        """Accept the token if it is here, and all messages below its position are here as well."""
        if self._token is not None and self._token.position == position_next:
            self.position, self._token = position_next, None

    def check_may_order(self, sender: ProcessId, position: int, position_end: int) -> None:
        """Raise if another member assigned positions after the token had arrived here."""
        is_late = self.position is not None or (
            self._token is not None and position_end > self._token.position
        )
        if sender != self._me and is_late:
            raise PeerFault(f"{sender} orders position {position} although {self._me} has the token")

    def release(self) -> int:
        """The token leaves; return the position that it carries."""
        assert self.position is not None
        position, self.position = self.position, None
        return position

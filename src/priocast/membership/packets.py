"""What members say to each other about the group itself.

These are datagrams: each stands alone, may be lost, repeated or late, and is said again for as long as it
matters. What is out of date is recognised by its ballot or view, and ignored.

    Heartbeat       I am here, in this view; these I hear, this much I hold
    StabilityReport        this much I hold, in between
    Prepare     (proposer) promise me to follow no lower ballot, and tell me where you stand
    Promise     (voter)    I do; this is my view, what I hold of it, and what I accepted last
    Declined    (voter)    not now, and why
    Propose     (proposer) this shall be the next view, and this the end of the old one
    Accepted    (voter)    I hold all of it; this is where the old view ends for me
    Install     (anybody who knows) the proposal was decided; begin
    FlushRequest, FlushReply   packets of the old view that one holds and another lacks
    EvictionNotice    the group went on without you
    OptionsMismatch    you want another kind of group
    ChangeOrder (member to coordinator) let this protocol order from the next view on
    FetchState, StateChunk   the application's state, piece by piece
    ClientRequest, ClientReply           a client that is not a member, and what became of its message
"""

from typing import Annotated

import msgspec

from priocast.core.identity import NAME_LENGTH_MAX, ProcessId
from priocast.core.message import PAYLOAD_BYTES_MAX, Scope
from priocast.core.view import View, ViewId
from priocast.membership.options import MEMBERS_MAX

STATE_CHUNK_BYTES = 16 * 1024
STATE_PIECES_MAX = 32
_SUPPLY_PACKETS_MAX = 4096
_PACKET_BYTES_MAX = PAYLOAD_BYTES_MAX + 256 * 1024
_CLIENTS_MAX = 4096
_SENDERS_MAX = 1024

Count = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
Text = Annotated[str, msgspec.Meta(max_length=512)]
Processes = Annotated[tuple[ProcessId, ...], msgspec.Meta(max_length=4 * MEMBERS_MAX)]
Counts = Annotated[tuple[Count, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
Matrix = Annotated[tuple[Counts, ...], msgspec.Meta(max_length=MEMBERS_MAX)]


class Control(msgspec.Struct, frozen=True, array_like=True):
    """The base of all of them."""


class Ballot(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """One attempt to agree on a view; higher ones win."""

    round: Count
    proposer: ProcessId

    def __str__(self) -> str:
        return f"{self.round}@{self.proposer}"


class Ordering(msgspec.Struct, frozen=True, array_like=True):
    """How a view is ordered: what `change_order` can change."""

    order: Name
    prioritised: bool
    starvation: Text


class FlushPlan(msgspec.Struct, frozen=True, array_like=True):
    """How an old view ends for those of its members that go on together.

    For each of its members, in the view's order: `counts` packets to all count, and `holders` (an index into
    `members`) has them. `acknowledged` says how many of them each member is known to hold, for those that do not
    go on; it decides about their messages where each side of a cut goes on.
    """

    view: ViewId
    members: Processes
    counts: Counts
    holders: Counts
    acknowledged: Matrix


class Proposal(msgspec.Struct, frozen=True, array_like=True):
    """The next view, how the old ones end, and how the new one is ordered."""

    view: View
    flush_plans: Annotated[tuple[FlushPlan, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
    ordering: Ordering
    reason: Text

    def flush_plan_of(self, view: ViewId | None) -> FlushPlan | None:
        """How this view ends, if it is one of those that end here."""
        return next((plan for plan in self.flush_plans if plan.view == view), None)


class SenderDigest(msgspec.Struct, frozen=True, array_like=True):
    """Which messages of a process have their place: on each level those below a number."""

    process: ProcessId
    next_numbers: Annotated[dict[int, Count], msgspec.Meta(max_length=256)]


class OrderDigest(msgspec.Struct, frozen=True, array_like=True):
    """Where the order stands at the end of a view.

    `position` is of the next message; `clients` says which requests of clients, and `ordered` which messages
    of each sender, have been ordered.
    """

    position: Count
    clients: Annotated[dict[str, Count], msgspec.Meta(max_length=_CLIENTS_MAX)] = {}
    ordered: Annotated[tuple[SenderDigest, ...], msgspec.Meta(max_length=_SENDERS_MAX)] = ()


class Heartbeat(Control, frozen=True, tag="alive"):
    """`config` stands for what all members must agree on; `leaving` asks to be let go."""

    config: int
    view: ViewId | None
    members: Processes
    accepted: ViewId | None
    round: Count
    hears: Processes
    received: Counts
    leaving: bool = False


class StabilityReport(Control, frozen=True, tag="held"):
    """How many packets to all I hold of each member of the view."""

    view: ViewId
    received: Counts


class Prepare(Control, frozen=True, tag="prepare"):
    ballot: Ballot
    voters: Processes


class Promise(Control, frozen=True, tag="promise"):
    """`received` counts the packets to all from each member of `view`, `acknowledged` what each is known to hold."""

    ballot: Ballot
    view: View | None
    received: Counts
    acknowledged: Matrix
    accepted_in: Ballot | None
    accepted: Proposal | None


class Declined(Control, frozen=True, tag="declined"):
    ballot: Ballot
    promised: Ballot
    reason: Text


class Propose(Control, frozen=True, tag="propose"):
    ballot: Ballot
    proposal: Proposal


class Accepted(Control, frozen=True, tag="accepted"):
    ballot: Ballot
    digest: OrderDigest


class Install(Control, frozen=True, tag="install"):
    proposal: Proposal
    digest: OrderDigest


class FlushRequest(Control, frozen=True, tag="fetch"):
    """Send me packets to all that `sender` sent in `view`, from number `first` on, up to `last`."""

    view: ViewId
    sender: ProcessId
    first: Count
    last: Count


class FlushReply(Control, frozen=True, tag="supply"):
    view: ViewId
    sender: ProcessId
    first: Count
    bodies: Annotated[
        tuple[Annotated[bytes, msgspec.Meta(max_length=_PACKET_BYTES_MAX)], ...],
        msgspec.Meta(max_length=_SUPPLY_PACKETS_MAX),
    ]


class EvictionNotice(Control, frozen=True, tag="excluded"):
    """The group went on, to this view, without this process: it may be meant for an earlier life."""

    process: ProcessId
    view: ViewId
    reason: Text


class OptionsMismatch(Control, frozen=True, tag="mismatch"):
    config: Text


class ChangeOrder(Control, frozen=True, tag="change-order"):
    view: ViewId
    ordering: Ordering


class FetchState(Control, frozen=True, tag="fetch-state"):
    """Send me pieces of the state as of `position` or later, from `offset` on, if begun of this `digest`."""

    view: ViewId
    position: Count
    digest: bytes
    offset: Count
    pieces: Annotated[int, msgspec.Meta(ge=1, le=STATE_PIECES_MAX)]


class StateChunk(Control, frozen=True, tag="state-chunk"):
    position: Count
    digest: Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
    size: Count
    offset: Count
    data: Annotated[bytes, msgspec.Meta(max_length=STATE_CHUNK_BYTES)]


class ClientRequest(Control, frozen=True, tag="request"):
    """Requests of one priority are numbered from 1; up to `settled` the client needs no more answer."""

    number: Annotated[int, msgspec.Meta(ge=1)]
    priority: Annotated[int, msgspec.Meta(ge=0, le=255)]
    scope: Scope
    payload: Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]
    settled: Count = 0


class ClientReply(Control, frozen=True, tag="reply"):
    """The request has this place, or was refused (`reason`)."""

    number: Count
    priority: int
    position: int
    reason: Text


AnyControl = (
    Heartbeat
    | StabilityReport
    | Prepare
    | Promise
    | Declined
    | Propose
    | Accepted
    | Install
    | FlushRequest
    | FlushReply
    | EvictionNotice
    | OptionsMismatch
    | ChangeOrder
    | FetchState
    | StateChunk
    | ClientRequest
    | ClientReply
)

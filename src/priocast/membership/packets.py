"""The datagrams of membership: what members tell each other about the group itself.

Each datagram is independent. It may be lost, repeated or late, and is repeated for as long as it matters. An
outdated one is recognised by its ballot or view, and ignored.

    Heartbeat                    I am alive, in this view; whom I hear, and what I have received
    StabilityReport              what I have received, between two heartbeats
    Prepare      (proposer)      promise to follow no lower ballot, and report your state
    Promise      (voter)         I do: my view, what I have received in it, and what I accepted last
    Declined     (voter)         I do not, and why
    Propose      (proposer)      this is the next view, and how the old one ends
    Accepted     (voter)         I have all packets that count; the digest of the order as the old view ends
    Install      (any process)   the proposal was decided: install it
    FlushRequest, FlushReply     packets of the old view that one member has and another lacks
    EvictionNotice               the group has continued without you
    LaterIncarnation             you have a lower incarnation number than an earlier start of yours
    OptionsMismatch              you have other group options than I
    ChangeOrder  (member to coordinator)   let this protocol order from the next view on
    FetchState, StateChunk       the application's state, chunk by chunk
    ClientRequest, ClientReply   a client asks a member to broadcast; the position of its message
    ClientSend, ClientReceipt    a client asks a member to send with a quality of service; the receipt
"""

from typing import Annotated

import msgspec

from priocast.core.identity import NUMBER_MAX, Name, Number, PositiveNumber, ProcessId
from priocast.core.message import CLIENT_LENGTH_MAX, CONTROL, PAYLOAD_BYTES_MAX, Scope
from priocast.core.priority import HIGHEST
from priocast.core.quality import Quality
from priocast.core.view import View, ViewId
from priocast.core.view_reason import ViewReason
from priocast.membership.options import MEMBERS_MAX
from priocast.services.packets import TransmissionId

STATE_CHUNK_BYTES = 16 * 1024
STATE_BYTES_MAX = 1 << 30
STATE_DIGEST_BYTES = 16
STATE_BASE_BYTES_MAX = 256
TEXT_LENGTH_MAX = 1024
STATE_CHUNKS_MAX = 32
FLUSH_PACKETS_MAX = 4096
_PACKET_BYTES_MAX = PAYLOAD_BYTES_MAX + 1280 * 1024
_CLIENTS_MAX = 4096
_SENDERS_MAX = 1024

Level = Annotated[int, msgspec.Meta(ge=0, le=CONTROL)]
OptionsHash = Annotated[int, msgspec.Meta(ge=0)]
Priority = Annotated[int, msgspec.Meta(ge=0, le=HIGHEST)]
ClientKey = Annotated[str, msgspec.Meta(max_length=CLIENT_LENGTH_MAX + len(f"/{HIGHEST}"))]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_LENGTH_MAX)]
Processes = Annotated[tuple[ProcessId, ...], msgspec.Meta(max_length=4 * MEMBERS_MAX)]
Counts = Annotated[tuple[Number, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
Matrix = Annotated[tuple[Counts, ...], msgspec.Meta(max_length=MEMBERS_MAX)]


class Control(msgspec.Struct, frozen=True, array_like=True):
    """The base of all datagrams."""


class Ballot(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """One attempt to agree on a view; higher ones win."""

    round: Number
    proposer: ProcessId

    def __str__(self) -> str:
        return f"{self.round}@{self.proposer}"


class Ordering(msgspec.Struct, frozen=True, array_like=True):
    """How a view is ordered: what `change_order` can change."""

    order: Name
    prioritised: bool
    starvation: Text


class FlushPlan(msgspec.Struct, frozen=True, array_like=True):
    """How an old view ends for those of its members that continue together.

    For each member of the old view, in its order: how many of its packets to all count (`counts`), and who
    has them all (`holders`, an index into `members`). In a partitionable group, `acknowledged` is how many
    packets of each member every member has acknowledged. It decides about messages of members that stay
    behind.
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
    reason: ViewReason

    def flush_plan_of(self, view: ViewId | None) -> FlushPlan | None:
        """How this view ends, if the proposal ends it."""
        return next((plan for plan in self.flush_plans if plan.view == view), None)


class SenderDigest(msgspec.Struct, frozen=True, array_like=True):
    """Which messages of a process were delivered: on each level, those below a number.

    `position` is the one after its last message: who was silent for longest is forgotten first.
    """

    process: ProcessId
    next_numbers: Annotated[dict[Level, Number], msgspec.Meta(max_length=CONTROL + 1)]
    position: Number = 0


class ClientDigest(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """The last request of a client that was delivered, and the position after it."""

    number: Number
    position: Number = 0


class OrderDigest(msgspec.Struct, frozen=True, array_like=True):
    """What has been ordered by the end of a view.

    `position` is that of the next message, `clients` the last request of each client that was delivered, and
    `ordered` the messages of each sender that were delivered.
    """

    position: Number
    clients: Annotated[dict[ClientKey, ClientDigest], msgspec.Meta(max_length=_CLIENTS_MAX)] = {}
    ordered: Annotated[tuple[SenderDigest, ...], msgspec.Meta(max_length=_SENDERS_MAX)] = ()


class Heartbeat(Control, frozen=True, tag="heartbeat"):
    """`config` is a hash of the options that all members must share; `leaving`: the sender wants to leave."""

    config: OptionsHash
    view: ViewId | None
    members: Processes
    round: Number
    hears: Processes
    received: Counts
    leaving: bool = False


class StabilityReport(Control, frozen=True, tag="stability-report"):
    """How many packets to all of each member of the view the sender has received."""

    view: ViewId
    received: Counts


class Prepare(Control, frozen=True, tag="prepare"):
    ballot: Ballot
    voters: Processes


class Promise(Control, frozen=True, tag="promise"):
    """`received` counts the packets of each member of `view`, and `acknowledged` those that each one has.

    In a primary group `acknowledged` is empty.
    """

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


class FlushRequest(Control, frozen=True, tag="flush-request"):
    """Send me the packets to all that `sender` sent in `view`, from number `first` to `last`."""

    view: ViewId
    sender: ProcessId
    first: Number
    last: Number


class FlushReply(Control, frozen=True, tag="flush-reply"):
    view: ViewId
    sender: ProcessId
    first: Number
    bodies: Annotated[
        tuple[Annotated[bytes, msgspec.Meta(max_length=_PACKET_BYTES_MAX)], ...],
        msgspec.Meta(max_length=FLUSH_PACKETS_MAX),
    ]


class EvictionNotice(Control, frozen=True, tag="eviction-notice"):
    """The group has continued to this view without this process, which may be an earlier incarnation."""

    process: ProcessId
    view: ViewId
    reason: ViewReason


class LaterIncarnation(Control, frozen=True, tag="later-incarnation"):
    """The receiver's number is lower than that of an earlier start of it: only a higher one is accepted."""

    known: ProcessId


class OptionsMismatch(Control, frozen=True, tag="options-mismatch"):
    config: Text


class ChangeOrder(Control, frozen=True, tag="change-order"):
    view: ViewId
    ordering: Ordering


class FetchState(Control, frozen=True, tag="fetch-state"):
    """Send me chunks of the state at `position` or later; from `offset` on, if it has this `digest`.

    `base` says in the application's own terms what I have of it already: the rest is enough.
    """

    view: ViewId
    position: Number
    digest: Annotated[bytes, msgspec.Meta(max_length=STATE_DIGEST_BYTES)]
    offset: Number
    chunks: Annotated[int, msgspec.Meta(ge=1, le=STATE_CHUNKS_MAX)]
    base: Annotated[bytes, msgspec.Meta(max_length=STATE_BASE_BYTES_MAX)] = b""


class StateChunk(Control, frozen=True, tag="state-chunk"):
    position: Number
    digest: Annotated[bytes, msgspec.Meta(min_length=STATE_DIGEST_BYTES, max_length=STATE_DIGEST_BYTES)]
    size: Annotated[int, msgspec.Meta(ge=0, le=STATE_BYTES_MAX)]
    offset: Annotated[int, msgspec.Meta(ge=0, le=STATE_BYTES_MAX)]
    data: Annotated[bytes, msgspec.Meta(max_length=STATE_CHUNK_BYTES)]


class ClientRequest(Control, frozen=True, tag="client-request"):
    """Requests of one priority are numbered from 1; the client needs no more answers up to `settled`."""

    number: PositiveNumber
    priority: Priority
    scope: Scope
    payload: Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]
    settled: Number = 0


class ClientReply(Control, frozen=True, tag="client-reply"):
    """The request has this position (-1: not known any more), or was rejected for a `reason`."""

    number: Number
    priority: Priority
    position: Annotated[int, msgspec.Meta(ge=-1, le=NUMBER_MAX)]
    reason: Text


class ClientSend(Control, frozen=True, tag="client-send"):
    """Send a message with a quality of service to the members with these names; without names, to all."""

    number: PositiveNumber
    priority: Priority
    quality: Quality
    to: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
    payload: Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]


class ClientReceipt(Control, frozen=True, tag="client-receipt"):
    """What became of a client's message, as in a `SendReceipt`; or the `reason` why it was not sent."""

    number: Number
    reason: Text
    message: TransmissionId | None = None
    accepted: bool = False
    answered: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()
    rejected: Annotated[dict[Name, Text], msgspec.Meta(max_length=MEMBERS_MAX)] = {}
    missing: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MEMBERS_MAX)] = ()
    rounds: Number = 0


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
    | LaterIncarnation
    | OptionsMismatch
    | ChangeOrder
    | FetchState
    | StateChunk
    | ClientRequest
    | ClientReply
    | ClientSend
    | ClientReceipt
)

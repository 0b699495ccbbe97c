"""What the parts of membership ask for: outputs, which `membership.py` carries out.

Trigger, proposer, voter and state transfer are state machines like an ordering protocol: inputs in, outputs
out. None of them sends a datagram or installs a view itself.

    ViewChangeTrigger   StartRound, LeaveAtOnce, SendControl
    Proposer            SendControl, CorrectMember, AvoidProcess
    Voter               SendControl, AcceptProposal, InstallView
    StateTransfer       SendControl, RestoreState
"""

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view_reason import Eviction
from priocast.membership.packets import Ballot, Control, OrderDigest, Ordering, Proposal
from priocast.membership.snapshot import Snapshot
from priocast.membership.target_view import TargetView


class SendControl(msgspec.Struct, frozen=True, gc=False):
    """Send a datagram to a process, which may be the sender itself."""

    to: ProcessId
    control: Control


class StartRound(msgspec.Struct, frozen=True):
    """Propose the target view, ordered like this.

    `evictions` are the members that it excludes against their will; `reorders` says that the order changes.
    """

    target: TargetView
    ordering: Ordering
    evictions: tuple[Eviction, ...] = ()
    reorders: bool = False


class LeaveAtOnce(msgspec.Struct, frozen=True):
    """Depart: no other member has to agree to it."""


class CorrectMember(msgspec.Struct, frozen=True):
    """Send a process the decision that it has missed."""

    process: ProcessId


class AvoidProcess(msgspec.Struct, frozen=True):
    """Leave a process out of target views until this time."""

    process: ProcessId
    until: int


class AcceptProposal(msgspec.Struct, frozen=True):
    """Send the proposer of the ballot the acceptance, with the digest of the order as the old view ends."""

    ballot: Ballot
    proposal: Proposal


class InstallView(msgspec.Struct, frozen=True):
    """End the old view, and begin the one that was decided."""

    proposal: Proposal
    digest: OrderDigest


class RestoreState(msgspec.Struct, frozen=True):
    """Hand the group's state to the application."""

    snapshot: Snapshot


MembershipOutput = (
    SendControl
    | StartRound
    | LeaveAtOnce
    | CorrectMember
    | AvoidProcess
    | AcceptProposal
    | InstallView
    | RestoreState
)

"""The recipient of atomic and tight messages (xAMp, Figure 5, right).

A recipient queues a message and answers, or rejects it because it has no room. It then waits for the
decision. If none comes it asks the sender, and gets the decision that was made, or learns that there is
none yet. If the sender has left the view, a monitor takes over. A decision of a monitor is of a higher
epoch than the sender's: a recipient that has answered a monitor ignores decisions of lower epochs.

The last decisions are kept, for monitors and so that a late retransmission is not queued again. A member
that asks for a decision that its sender has forgotten has missed thousands of messages: it reports itself
as failed.
"""

from collections.abc import Callable

import msgspec

from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.links.transmission import earliest
from priocast.services.accept_queues import AcceptQueue, InsertionProposal
from priocast.services.options import ServiceOptions
from priocast.services.outputs import Multicast, ServiceOutput, Suspected
from priocast.services.packets import (
    DECISIONS_KEPT,
    RECIPIENTS_MAX,
    Closed,
    DecisionReceived,
    Inquiry,
    Knowledge,
    MessageDecision,
    Report,
    Response,
    ServiceData,
    StatusRequest,
    TransmissionId,
    Undecided,
)
from priocast.services.present import PresentMembers


class _Awaited(msgspec.Struct):
    """A message without a decision."""

    data: ServiceData
    proposal: InsertionProposal
    ask_at: int
    epoch: int = 0
    unanswered: int = 0


class Acceptance:
    """What one member has received of the messages of one quality, and the decisions about them."""

    def __init__(
        self,
        me: ProcessId,
        options: ServiceOptions,
        present: PresentMembers,
        queue: AcceptQueue,
        has_room: Callable[[], bool],
    ) -> None:
        self._me = me
        self._options = options
        self._present = present
        self._queue = queue
        self._has_room = has_room
        self._undecided: dict[TransmissionId, _Awaited] = {}
        self._decisions: dict[TransmissionId, MessageDecision] = {}

    # Inputs

    def on_data(self, data: ServiceData, now: int) -> list[ServiceOutput]:
        """A message came, or a retransmission of it."""
        sender = data.id.sender
        decided = self._decisions.get(data.id)
        if decided is not None:
            if decided.epoch == 0:
                return []
            # A monitor decided while the group was partitioned: the sender must not wait for this recipient.
            return [Multicast((sender,), Response(data.id, data.retry, "decided without its sender"))]
        known = self._undecided.get(data.id)
        if known is None and not self._has_room():
            return [Multicast((sender,), Response(data.id, data.retry, "no room"))]
        if known is not None and (known.epoch > 0 or data.retry < known.data.retry):
            return []  # a monitor has counted the transmission that is queued, or this one was overtaken
        proposal = self._queue.insert(data)
        self._undecided[data.id] = _Awaited(data, proposal, now + self._options.decision_ns)
        return [Multicast((sender,), Response(data.id, data.retry, "", proposal.lowest, proposal.before))]

    def on_decision(self, peer: ProcessId, decision: MessageDecision) -> list[ServiceOutput]:
        """A message is accepted or rejected."""
        message = decision.id
        undecided = self._undecided.get(message)
        received = Multicast((peer,), DecisionReceived(message, decision.epoch))
        if undecided is None:
            if not decision.accepted and message not in self._decisions:
                self._keep(decision)  # this member rejected it
            return [received] if message in self._decisions else []
        if decision.epoch < undecided.epoch:
            return [received]  # a later monitor decides
        self._check_decision(peer, decision, undecided)
        del self._undecided[message]
        self._keep(decision)
        if decision.accepted:
            self._queue.accept(message, decision.point)
        else:
            self._queue.reject(message)
        return [received] if undecided.data.quality.acknowledged or decision.epoch else []

    def on_undecided(self, answer: Undecided, now: int) -> None:
        """The sender still collects responses: keep waiting."""
        if answer.id in self._undecided:
            undecided = self._undecided[answer.id]
            undecided.ask_at = now + self._options.decision_ns
            undecided.unanswered = 0

    def on_closed(self, answer: Closed) -> list[ServiceOutput]:
        """The sender no longer knows the decision."""
        return [Suspected(self._me)] if answer.id in self._undecided else []

    def on_inquiry(self, peer: ProcessId, inquiry: Inquiry) -> list[ServiceOutput]:
        """A monitor asks what is known here."""
        message, epoch = inquiry.id, inquiry.epoch
        decided, undecided = self._decisions.get(message), self._undecided.get(message)
        if decided is not None:
            knowledge = Knowledge.ACCEPTED if decided.accepted else Knowledge.REJECTED
            report = Report(message, epoch, knowledge, 0, decided.point)
        elif message.sender in self._present:
            report = Report(message, epoch, Knowledge.WAITS)
        elif undecided is None:
            # It must not be accepted here later: the monitor counts on it.
            self._keep(MessageDecision(message, epoch, accepted=False, reason="unknown to a recipient"))
            report = Report(message, epoch, Knowledge.NOTHING)
        elif epoch < undecided.epoch or self._waits_for_earlier(undecided.data):
            report = Report(message, epoch, Knowledge.WAITS)
        else:
            _check_monitor(peer, epoch, undecided.data)
            undecided.epoch = epoch
            proposal = self._queue.proposal(message)
            retry = undecided.data.retry
            report = Report(message, epoch, Knowledge.HELD, retry, proposal.lowest, proposal.before)
        return [Multicast((peer,), report)]

    def on_tick(self, now: int) -> list[ServiceOutput]:
        """Ask for decisions that are overdue; a sender that does not answer has failed."""
        outputs: list[ServiceOutput] = []
        for message, undecided in self._undecided.items():
            if now < undecided.ask_at or message.sender not in self._present:
                continue
            if undecided.unanswered == self._options.transmissions_max:
                undecided.ask_at = now + self._options.decision_ns
                undecided.unanswered = 0
                outputs.append(Suspected(message.sender))
            else:
                undecided.ask_at = now + self._options.response_ns
                undecided.unanswered += 1
                outputs.append(Multicast((message.sender,), StatusRequest(message)))
        return outputs

    def on_inaccessible(self, duration_ns: int) -> None:
        """The network was silent: timers expire later, and a question that was lost does not count."""
        for undecided in self._undecided.values():
            undecided.ask_at += duration_ns
            undecided.unanswered = max(0, undecided.unanswered - 1)

    def take_over(self, message: TransmissionId, now: int) -> int:
        """This member becomes the monitor; returns the epoch of the last one. If it fails, it tries again."""
        undecided = self._undecided[message]
        undecided.ask_at = now + self._options.decision_ns
        return undecided.epoch

    def on_view(self, now: int) -> None:
        """The members have changed: recipients of messages of failed senders become monitors in turn."""
        for message, undecided in self._undecided.items():
            if message.sender not in self._present:
                rank = self._present.among(undecided.data.recipients).index(self._me)
                undecided.ask_at = now + rank * self._options.decision_ns

    # Queries

    def orphans(self, now: int) -> list[ServiceData]:
        """The first undecided message of each sender that has left the view, if this member is to decide."""
        return [each.data for each in self._first_orphans() if now >= each.ask_at]

    @property
    def deadline(self) -> int | None:
        """When `on_tick` or `orphans` has something to do next."""
        if not self._undecided:
            return None
        waiting = (each for message, each in self._undecided.items() if message.sender in self._present)
        return earliest(each.ask_at for each in (*waiting, *self._first_orphans()))

    # Steps

    def _first_orphans(self) -> list[_Awaited]:
        """The first undecided message of each sender that has left the view."""
        first: dict[ProcessId, _Awaited] = {}
        for message in sorted(each for each in self._undecided if each.sender not in self._present):
            first.setdefault(message.sender, self._undecided[message])
        return list(first.values())

    def _waits_for_earlier(self, data: ServiceData) -> bool:
        """Whether an earlier message of the same sender is undecided: it must be decided first."""
        return any(
            other.sender == data.id.sender
            and other.number < data.id.number
            and each.data.priority == data.priority
            for other, each in self._undecided.items()
        )

    def _check_decision(self, peer: ProcessId, decision: MessageDecision, undecided: _Awaited) -> None:
        if decision.epoch:
            _check_monitor(peer, decision.epoch, undecided.data)
        if decision.epoch > undecided.epoch:
            raise Rejected("decision without an inquiry", f"{decision.id} from {peer}")
        if decision.accepted and undecided.proposal.lowest and decision.point <= undecided.proposal.lowest:
            self._reject_alone(decision.id, decision.epoch)
            raise Rejected("insertion point not possible", f"{decision.id} from {peer}")

    def _reject_alone(self, message: TransmissionId, epoch: int) -> None:
        """Do not deliver a message that the others accept at a point that is over here.

        Its sender is at fault; or it decided in another part of a partitioned group, without this member.
        What is behind the message must not wait for another decision.
        """
        del self._undecided[message]
        self._keep(MessageDecision(message, epoch, accepted=False, reason="insertion point not possible"))
        self._queue.reject(message)

    def _keep(self, decision: MessageDecision) -> None:
        self._decisions[decision.id] = decision
        if len(self._decisions) > DECISIONS_KEPT:
            del self._decisions[next(iter(self._decisions))]


def _check_monitor(peer: ProcessId, epoch: int, data: ServiceData) -> None:
    """The epoch names the recipient that decides."""
    rank = epoch % RECIPIENTS_MAX
    if rank >= len(data.recipients) or data.recipients[rank] != peer:
        raise Rejected("decision by a process that may not decide", f"{data.id} from {peer}")

"""Priority within messages that are delivered together: a part, a bucket, a decided set, a round.

Each of these has its own rule, and its limits follow from packets of its protocol: so these checks, unlike
those of the other guarantees, know the packets of the protocols.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import count
from typing import TypeVar

from priocast.core.guarantees import PRIORITY
from priocast.core.identity import MessageId, ProcessId
from priocast.core.message import CONTROL, Batch
from priocast.core.protocol import Packet
from priocast.protocols.agreement.consensus_packets import ConsensusAccept, SetDecision, Value
from priocast.protocols.agreement.proposal import AgreementProposal
from priocast.protocols.agreement.proposal_packets import ProposedOrder, ReceivedCounts
from priocast.protocols.agreement.sets import AgreementSets
from priocast.protocols.flow.data import PacedData
from priocast.protocols.flow.packets import Data
from priocast.protocols.history.timestamped import TimestampedHistory
from priocast.protocols.history.timestamped_packets import StampedData
from priocast.protocols.parts import CountParts, Parts
from protocols.harness import Delivered, Group, Happening, Received, Sent, Violation
from protocols.ranked_queue import RankedQueue, ids

Kind = TypeVar("Kind", bound=Packet)


def check_joint_delivery(group: Group) -> None:
    """Messages that are delivered together are in the order of their protocol, and are chosen by sort key."""
    for name, member in group.members.items():
        match member.protocol:
            case Parts():
                _check_delivered(group, name, _parts_in_order(group, name))
            case TimestampedHistory():
                _check_delivered(group, name, _buckets_in_order(group))
            case AgreementSets():
                _check_delivered(group, name, _sets_in_order(group))
                _check_chosen(group, name)
            case AgreementProposal():
                _check_proposed(group, name)


def _check_delivered(group: Group, name: str, in_order: list[MessageId]) -> None:
    """A member has delivered in this order; other checks find missing messages."""
    delivered = [each.message.id for each in _of(group, name) if isinstance(each, Delivered)]
    wanted = set(delivered)
    for message, expected in zip(delivered, filter(wanted.__contains__, in_order), strict=False):
        if message != expected:
            raise Violation(PRIORITY, f"{name} delivers {message} where {expected} is next")


def _parts_in_order(group: Group, name: str) -> list[MessageId]:
    """The order below, part by part: the most urgent first, equals as they are."""
    return [message for part in _parts(group, name) for _, message in sorted(part, key=lambda each: each[0])]


def _parts(group: Group, name: str) -> Iterator[list[tuple[int, MessageId]]]:
    """What was taken from the order below, cut where parts end; each message with what it is sorted by.

    A part ends when it is full, or with a control message that was sent when its first message had a place.
    """
    layer = group.members[name].protocol
    full = group.options.part_count if isinstance(layer, CountParts) else None
    part: list[tuple[int, MessageId]] = []
    began = 0
    for position, batch in group.below[name]:
        if batch.level == CONTROL:
            if part and began < int(batch.payloads()[0]):
                yield part
                part = []
            continue
        for place, message in enumerate(ids(batch), position):
            began = began if part else place
            part.append((-batch.urgency, message))
            if len(part) == full:
                yield part
                part = []


def _buckets_in_order(group: Group) -> list[MessageId]:
    """Of every bucket the most urgent of its senders' next ones, of equals the one of the first sender."""
    prioritised = group.options.prioritised
    bucket = group.options.bucket if prioritised else 1
    sent: list[deque[tuple[int, int, int, MessageId]]] = []
    for rank, name in enumerate(group.members):
        sent.append(deque())
        for packet in _packets_sent(group, name, StampedData):
            for batch in packet.batches:
                key = (-(-packet.timestamp // bucket), -batch.urgency if prioritised else 0, rank)
                sent[rank].extend((*key, message) for message in ids(batch))
    in_order = []
    while nexts := [stream[0] for stream in sent if stream]:
        _, _, rank, message = min(nexts)
        in_order.append(message)
        sent[rank].popleft()
    return in_order


def _sets_in_order(group: Group) -> list[MessageId]:
    """Set by set: the most urgent first, of equals those of the first sender, as they were sent."""
    precedence: dict[MessageId, tuple[int, int, int]] = {}
    for rank, name in enumerate(group.members):
        serials = count()
        for packet in _packets_sent(group, name, PacedData):
            for batch in packet.batches:
                urgency = batch.urgency if group.options.prioritised else 0
                precedence.update((message, (-urgency, rank, next(serials))) for message in ids(batch))
    return [message for each in _decided(group) for message in sorted(each, key=precedence.__getitem__)]


def _decided(group: Group) -> list[list[MessageId]]:
    """The sets that were decided, in the order of their instances."""
    packets = [packet for name in group.members for packet in _packets_sent(group, name, SetDecision)]
    decided = {packet.instance: packet.references for packet in packets}
    return [_named(decided[instance]) for instance in sorted(decided)]


def _check_chosen(group: Group, name: str) -> None:
    """Whatever a leader leaves out of a set is behind all that is in it: by rank, then by arrival."""
    decided, arrivals = _decided(group), count()
    waiting: dict[MessageId, tuple[int, int]] = {}
    proposed: set[tuple[int, Value]] = set()
    for happened in group.journal:
        match happened:
            case Received(member=receiver, packet=PacedData(batches=batches), now=now) if receiver == name:
                for batch in batches:
                    key = (group.options.policy.sort_key(batch.urgency, now), next(arrivals))
                    waiting.update(dict.fromkeys(ids(batch), key))
            case Sent(member=leader, packet=ConsensusAccept(instance=instance, references=references)):
                # What was proposed there before was not chosen anew, but may be decided already.
                if leader == name and (instance, references) not in proposed:
                    gone = {message for each in decided[:instance] for message in each}
                    _check_choice(waiting, gone, _named(references))
                proposed.add((instance, references))


def _check_choice(
    keys: dict[MessageId, tuple[int, int]], gone: set[MessageId], chosen: list[MessageId]
) -> None:
    last = max(keys[message] for message in chosen)
    for message, key in keys.items():
        if key < last and message not in gone and message not in chosen:
            raise Violation(PRIORITY, f"a set leaves out {message}, but not what that should overtake")


def _check_proposed(group: Group, name: str) -> None:
    """A starter proposes by rank what all who answered in the round have; waiting counts from arrival."""
    queue = RankedQueue(group.options.policy)
    answers: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    totals: dict[ProcessId, int] = defaultdict(int)
    came: list[tuple[Batch, int, int]] = []  # with its sender's total so far, and the time
    for happened in _of(group, name):
        match happened:
            case Received(packet=Data(batches=batches), now=now):
                for batch in batches:
                    totals[batch.sender] += batch.count
                    came.append((batch, totals[batch.sender], now))
            case Received(packet=ReceivedCounts(round=number, received=received)):
                answers[number].append(received)
            case Sent(packet=ProposedOrder(round=number, references=references)):
                least = map(min, zip(*answers[number], strict=True))
                in_common = dict(zip(group.view.members, least, strict=True))
                for batch, total, now in came:
                    if total <= in_common[batch.sender]:
                        queue.enter(batch, now)
                came = [each for each in came if each[1] > in_common[each[0].sender]]
                for reference in references:
                    queue.leave(reference)


def _named(references: Value) -> list[MessageId]:
    return [message for reference in references for message in ids(reference)]


def _of(group: Group, name: str) -> Iterator[Happening]:
    """What happened at one member."""
    return (happened for happened in group.journal if happened.member == name)


def _packets_sent(group: Group, name: str, kind: type[Kind]) -> Iterator[Kind]:
    for happened in _of(group, name):
        if isinstance(happened, Sent) and isinstance(happened.packet, kind):
            yield happened.packet

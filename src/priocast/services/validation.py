"""What a packet of another process must satisfy beyond its type, before any part uses it.

A correct member never sends a packet that fails here. `Rejected` is raised, and nothing was changed.
"""

from functools import lru_cache

from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.core.quality import Quality, QualityKind
from priocast.services.dissemination import recipients_transmit
from priocast.services.insertion import Point, is_point
from priocast.services.packets import (
    OPEN_MAX,
    RECIPIENTS_MAX,
    STREAMS,
    Closed,
    Inquiry,
    Knowledge,
    MessageDecision,
    MessagePacket,
    Report,
    Response,
    ServiceData,
    ServiceStream,
    StatusRequest,
    Undecided,
)

_CHECKS_KEPT = 1024


def check_packet(
    me: ProcessId, peer: ProcessId, packet: MessagePacket, *, sent: int, has_points: bool
) -> None:
    """Raise if this packet cannot come from a correct member.

    `sent` is how many messages this member has sent in the stream. `has_points` says whether insertion points
    decide about the order of the stream.
    """
    message = packet.id
    _require(message.number > 0, "message number 0", packet, peer)
    _require(message.sender != me or message.number <= sent, "message that was never sent", packet, peer)
    is_agreed = message.stream is not ServiceStream.DISSEMINATED
    is_mine, is_theirs = message.sender == me, message.sender == peer
    match packet:
        case ServiceData():
            _check_data(me, peer, packet, has_points)
        case Response():
            _require(is_mine or not is_agreed, "response for another process", packet, peer)
            points_wanted = has_points and not packet.reason
            _check_points(peer, packet, packet.lowest, packet.before, points_wanted)
        case StatusRequest():
            _require(is_mine or not is_agreed, "question for another process", packet, peer)
        case Closed():
            _require(is_theirs or not is_agreed, "answer for another process", packet, peer)
        case Undecided():
            _require(is_agreed and is_theirs, "answer for another process", packet, peer)
        case MessageDecision():
            _require(is_agreed, "decision about a message that needs none", packet, peer)
            is_monitor = packet.epoch >= RECIPIENTS_MAX and not is_theirs
            _require(
                is_monitor or (packet.epoch == 0 and is_theirs), "decision of a wrong epoch", packet, peer
            )
            _check_points(peer, packet, packet.point, (), has_points and packet.accepted)
        case Inquiry():
            _require(is_agreed and not is_mine, "inquiry about a living sender", packet, peer)
            _require(packet.epoch >= RECIPIENTS_MAX, "inquiry of a wrong epoch", packet, peer)
        case Report():
            _require(is_agreed, "report about a message that needs none", packet, peer)
            is_known = packet.knowledge in (Knowledge.HELD, Knowledge.ACCEPTED)
            _check_points(peer, packet, packet.lowest, packet.before, has_points and is_known)


def _check_data(me: ProcessId, peer: ProcessId, data: ServiceData, has_points: bool) -> None:
    quality, recipients, kind = data.quality, data.recipients, data.quality.kind
    _require(me in recipients, "message for others", data, peer)
    if reason := _fault_of(quality, recipients):
        _require(False, reason, data, peer)
    _require(data.retry > 0, "transmission number 0", data, peer)
    _require(
        STREAMS.get(kind, ServiceStream.DISSEMINATED) is data.id.stream,
        "quality of another stream",
        data,
        peer,
    )
    is_relayed = peer != data.id.sender
    may_relay = peer in recipients and kind not in STREAMS and recipients_transmit(quality)
    _require(not is_relayed or may_relay, "message of another process", data, peer)
    has_previous = kind in (QualityKind.BEST_EFFORT, QualityKind.AT_LEAST, QualityKind.RELIABLE)
    _require(
        len(data.previous) == (len(recipients) if has_previous else 0), "wrong number of numbers", data, peer
    )
    _require(max(data.previous, default=0) < data.id.number, "previous is later", data, peer)
    _require(data.open_from <= data.id.number, "open from a later message", data, peer)
    is_far = kind not in STREAMS and data.id.number - data.open_from >= OPEN_MAX
    _require(not is_far, "too many open messages", data, peer)
    counts = data.unit_counts
    is_shared = len(counts) > 1 and min(counts) > 0 and sum(counts) == len(data.units)
    _require(not counts or is_shared, "wrong numbers of units", data, peer)
    _check_clock(peer, data, has_points)
    if data.history:
        _require(kind is QualityKind.CAUSAL, "unexpected history", data, peer)
        _require(
            all(each.id.stream is ServiceStream.DISSEMINATED and each.id != data.id for each in data.history),
            "impossible history",
            data,
            peer,
        )


def _check_clock(peer: ProcessId, data: ServiceData, has_points: bool) -> None:
    if data.quality.kind is QualityKind.DELTA:
        _require(len(data.clock) == 1, "no time of sending", data, peer)
    else:
        _require(not data.clock or (has_points and is_point(data.clock)), "unexpected clock", data, peer)


@lru_cache(_CHECKS_KEPT)
def _fault_of(quality: Quality, recipients: tuple[ProcessId, ...]) -> str:
    """What is wrong with a message to these recipients, whatever else is in it; mostly the same ones come."""
    if len(set(recipients)) < len(recipients):
        return "recipient named twice"
    if not quality.is_consistent:
        return "impossible quality"
    return "" if set(quality.names) <= {each.name for each in recipients} else "quality names others"


def _check_points(
    peer: ProcessId, packet: MessagePacket, lowest: Point, before: Point, are_wanted: bool
) -> None:
    if are_wanted:
        fits = is_point(lowest) and (not before or (is_point(before) and lowest < before))
    else:
        fits = not lowest and not before
    _require(fits, "impossible insertion point", packet, peer)


def _require(holds: bool, reason: str, packet: MessagePacket, peer: ProcessId) -> None:
    if not holds:
        raise Rejected(reason, f"{type(packet).__name__} about {packet.id} from {peer}")

"""The named cases of the two-phase accept protocol, each a small scripted run on a LAN.

A case returns what went wrong: nothing, unless a rule of the protocol is missing. Members are a, b, c and d;
member d sends a second message in between where the order of two messages is at stake.
"""

from collections.abc import Callable

from priocast.core.identity import ProcessId
from priocast.core.quality import ATOMIC, RELIABLE, TIGHT
from priocast.services.packets import (
    MessageDecision,
    Response,
    ServiceData,
    ServicePacket,
    ServiceStream,
    TransmissionId,
)
from services.builders import A, B, C, D
from services.lan import MS, Lan
from services.trials import violations

Case = Callable[[], list[str]]


def late_ack_old_retry() -> list[str]:
    """The ack of b to the first transmission arrives after the second one, which b does not receive."""

    def lose(source: ProcessId, target: ProcessId, packet: ServicePacket) -> bool:
        if isinstance(packet, Response) and source == B and packet.retry == 1 and packet.id == first:
            lan.at(13 * MS, lambda: lan.receive(A, B, packet))
            return True
        return (_is_data_of_a(packet, 1) and target == C) or (_is_data_of_a(packet, 2) and target == B)

    lan = Lan(4, lose=lose)
    first = TransmissionId(A, ServiceStream.ATOMIC, 1)
    return _run_with_message_between(lan)


def retry_moves() -> list[str]:
    """The first transmission does not reach c, the second one reaches all."""
    return _run_with_message_between(
        Lan(4, lose=lambda _, target, packet: _is_data_of_a(packet, 1) and target == C)
    )


def monitor_mixed_retries() -> list[str]:
    """The first transmission reaches b alone, the second one reaches c and d, and the sender fails."""

    def lose(_: ProcessId, target: ProcessId, packet: ServicePacket) -> bool:
        return (_is_data_of_a(packet, 1) and target in (C, D)) or (_is_data_of_a(packet, 2) and target == B)

    lan = Lan(4, lose=lose)
    lan.at(12 * MS, lambda: lan.crash(0))
    return _run_with_message_between(lan)


def monitor_after_partial_accept() -> list[str]:
    """The sender accepts a message, which only b learns before the sender fails."""
    lan = Lan(
        4, lose=lambda source, target, packet: _is_decision(packet) and source == A and target in (C, D)
    )
    lan.send(0, ATOMIC)
    lan.at(6 * MS, lambda: lan.crash(0))
    lan.run(2000)
    return _problems(lan)


def decision_after_reject() -> list[str]:
    """Member d has no room, so the message is rejected, and c asks for the decision."""
    lan = Lan(4, held_max=1)
    lan.consume_at[D] = 500 * MS
    lan.send(1, RELIABLE, to=[3])
    lan.run(50)
    lan.lose = lambda _, target, packet: _is_decision(packet) and target == C and lan.now < 70 * MS
    lan.send(0, ATOMIC)
    lan.run(1000)
    return _problems(lan)


def unaccepted_head_blocks() -> list[str]:
    """Member c learns the decision about the second message before that about the first one."""
    lan = Lan(4, lose=lambda source, target, packet: _is_decision(packet) and source == A and target == C)
    lan.send(0, ATOMIC)
    lan.send(1, ATOMIC)
    lan.at(30 * MS, lambda: setattr(lan, "lose", lambda *_: False))
    lan.run(1000)
    return _problems(lan)


def decision_while_pending() -> list[str]:
    """Member c asks for a decision while the sender still waits for d."""
    lan = Lan(4, omission_degree=None)
    lan.lose = lambda _, target, packet: (
        isinstance(packet, ServiceData) and target == D and lan.now < 200 * MS
    )
    first = lan.send(0, ATOMIC)
    lan.run(2000)
    return _problems(lan) + ([] if lan.who_delivered(first) == "abcd" else ["not accepted"])


def two_tight_locks() -> list[str]:
    """Two urgent messages lock the queue of c, which does not learn about the second one for long."""
    lan = Lan(4)
    for each in lan.ids:
        lan.consume_at[each] = 30 * MS
    lan.lose = lambda source, target, packet: (
        _is_decision(packet) and source == B and target == C and lan.now < 100 * MS
    )
    slow = lan.send(3, TIGHT, priority=1)
    sent = [slow]
    lan.at(5 * MS, lambda: sent.append(lan.send(0, TIGHT, priority=9)))
    lan.at(5 * MS + 1, lambda: sent.append(lan.send(1, TIGHT, priority=9)))
    lan.run(1000)
    return _problems(lan)


CASES: dict[str, Case] = {
    "xamp-late-ack-old-retry": late_ack_old_retry,
    "xamp-retry-moves": retry_moves,
    "xamp-monitor-mixed-retries": monitor_mixed_retries,
    "xamp-monitor-after-partial-accept": monitor_after_partial_accept,
    "xamp-decision-after-reject": decision_after_reject,
    "xamp-unaccepted-head-blocks": unaccepted_head_blocks,
    "xamp-decision-while-pending": decision_while_pending,
    "xamp-two-tight-locks": two_tight_locks,
}


def _is_data_of_a(packet: ServicePacket, retry: int) -> bool:
    return isinstance(packet, ServiceData) and packet.id.sender == A and packet.retry == retry


def _is_decision(packet: ServicePacket) -> bool:
    return isinstance(packet, MessageDecision)


def _run_with_message_between(lan: Lan) -> list[str]:
    """Member a sends at once and again after 10 ms; d sends in between."""
    sent = [lan.send(0, ATOMIC)]
    lan.at(5 * MS, lambda: sent.append(lan.send(3, ATOMIC)))
    lan.run(2000)
    return _problems(lan)


def _problems(lan: Lan) -> list[str]:
    undelivered = [
        f"{each} holds {lan.services[each].held}" for each in lan.alive if _holds_something(lan, each)
    ]
    return violations(lan) + undelivered


def _holds_something(lan: Lan, process: ProcessId) -> bool:
    return lan.services[process].held > 0 and lan.consume_at[process] <= lan.now

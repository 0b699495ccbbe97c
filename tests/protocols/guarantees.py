"""The guarantees, each as a function that looks at what happened in a group and finds what broke it.

They know protocols only by their packets' `batches`, `position` and `window`, as traces do, so they hold
for whatever is in the registry.
"""

from collections import defaultdict

from priocast.core.guarantees import (
    AGREEMENT,
    BOUNDED_WINDOW,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    LIVENESS,
    PRIORITY,
    TOTAL_ORDER,
)
from priocast.core.identity import MessageId
from priocast.core.message import Batch
from priocast.core.protocol import Packet
from priocast.core.window import WINDOW_FIRST
from priocast.protocols import PROTOCOLS
from protocols.harness import Broadcast, Delivered, Group, Journal, Received, Sent


class Violation(AssertionError):
    """A guarantee was broken."""

    def __init__(self, guarantee: str, how: str) -> None:
        super().__init__(f"{guarantee}: {how}")
        self.guarantee = guarantee


def check_all(group: Group) -> None:
    """Everything that a group at rest must have kept."""
    prioritised = group.options.prioritised
    check_integrity(group.journal)
    check_total_order(group.journal)
    check_fifo(group.journal, among_equals=prioritised)
    check_priority_at_the_orderer(group)
    check_window(group)
    check_agreement_and_liveness(group)


def check_integrity(journal: Journal) -> None:
    """Delivered at most once, and only if it was broadcast (xAMp, Px4 and Px5)."""
    broadcast = {
        happened.payload: (happened.member, happened.priority, happened.scope)
        for happened in journal
        if isinstance(happened, Broadcast)
    }
    payload_of: dict[MessageId, bytes] = {}
    seen: set[tuple[str, bytes]] = set()
    for member, _, message in _deliveries(journal):
        if broadcast.get(message.payload) != (message.sender.name, message.priority, message.scope):
            raise Violation(INTEGRITY, f"{member} delivers {message}, which nobody broadcast")
        if (member, message.payload) in seen:
            raise Violation(INTEGRITY, f"{member} delivers {message} twice")
        seen.add((member, message.payload))
        if payload_of.setdefault(message.id, message.payload) != message.payload:
            raise Violation(INTEGRITY, f"{message.id} names two messages")


def check_total_order(journal: Journal) -> None:
    """Every member delivers the same message at the same place, from place 0 on without gaps (Px11)."""
    at_place: dict[int, MessageId] = {}
    next_place: dict[str, int] = defaultdict(int)
    for member, position, message in _deliveries(journal):
        if position != next_place[member]:
            raise Violation(TOTAL_ORDER, f"{member} delivers place {position} after {next_place[member] - 1}")
        next_place[member] += 1
        if at_place.setdefault(position, message.id) != message.id:
            raise Violation(TOTAL_ORDER, f"{at_place[position]} and {message.id} are both at {position}")


def check_fifo(journal: Journal, among_equals: bool) -> None:
    """A sender's messages (those of equal priority) are delivered in the order of broadcast (Px13)."""
    spoken = [happened.payload for happened in journal if isinstance(happened, Broadcast)]
    number_of = {payload: number for number, payload in enumerate(spoken)}
    last: dict[tuple[str, str, int], int] = {}
    for member, _, message in _deliveries(journal):
        stream = (member, message.sender.name, message.priority if among_equals else 0)
        number = number_of[message.payload]
        if number < last.get(stream, -1):
            raise Violation(FIFO_AMONG_EQUALS, f"{member} delivers {message} after a later one of its sender")
        last[stream] = number


def check_priority_at_the_orderer(group: Group) -> None:
    """What gets a place has the best rank of all that waits at the member that gives it (techniques, 6.1)."""
    orderer = PROTOCOLS[group.order].orderer(group.view)
    rank = group.options.policy.rank
    waiting: dict[MessageId, int] = {}
    for happened in group.journal:
        if not isinstance(happened, Sent | Received) or orderer is None or happened.member != orderer.name:
            continue
        if isinstance(happened, Received) and not _gives_places(happened.packet):
            for batch in _batches(happened.packet):
                waiting.update(dict.fromkeys(_ids(batch), rank(batch.urgency, happened.now)))
        elif isinstance(happened, Sent) and _gives_places(happened.packet):
            for batch in _batches(happened.packet):
                for message in _ids(batch):
                    of_message, best = waiting.pop(message), min(waiting.values(), default=None)
                    if best is not None and best < of_message:
                        raise Violation(PRIORITY, f"{message} goes before what should overtake it")


def check_window(group: Group) -> None:
    """What has a place and is not consumed by the slowest member stays within the window.

    It is consumption that counts and not receipt: only then does the backlog wait where priorities act.
    """
    options = group.options
    granted = options.window or WINDOW_FIRST
    consumed = dict.fromkeys(group.members, group.position)
    placed: list[tuple[int, int]] = []  # end and bytes of each batch that has a place
    for happened in group.journal:
        if isinstance(happened, Delivered):
            consumed[happened.member] = happened.position + 1
        if not isinstance(happened, Sent):
            continue
        if options.window is None:
            granted = max(granted, getattr(happened.packet, "window", 0))
        if not _gives_places(happened.packet):
            continue
        slowest = min(consumed.values())
        end: int = happened.packet.position  # type: ignore[attr-defined]
        for batch in _batches(happened.packet):
            if sum(size for place, size in placed if place > slowest) >= options.window_bytes:
                raise Violation(BOUNDED_WINDOW, f"{batch} is ordered although the window has no bytes left")
            end += batch.count
            placed.append((end, len(batch.block)))
        if end - slowest > granted:
            raise Violation(
                BOUNDED_WINDOW, f"{end - slowest} messages are ordered and not consumed; {granted} may be"
            )


def check_waiting(group: Group) -> None:
    """Who has more to order waits for somebody, and goes on when that one has consumed all it has."""
    for link in group.links.values():
        link.congested = False
    for name, member in group.members.items():
        group.turn(name)
        protocol = member.protocol
        waits_for, place = protocol.waiting_for(), protocol.position_next
        if waits_for is None:
            if orders(group, name) and protocol.waiting(group.now):
                raise Violation(LIVENESS, f"{name} orders nothing more and waits for nobody")
            continue
        for _ in range(2):
            _talk(group, name, waits_for.name)
            group.consume(waits_for.name, len(group.journal))
        _talk(group, name, waits_for.name)
        if protocol.waiting_for() == waits_for and protocol.position_next == place:
            raise Violation(LIVENESS, f"{name} waits for {waits_for.name}, which can do nothing about it")


def orders(group: Group, name: str) -> bool:
    """Whether a member decides the order."""
    orderer = PROTOCOLS[group.order].orderer(group.view)
    return orderer is not None and orderer.name == name


def _talk(group: Group, one: str, other: str) -> None:
    """Let two members hear all that they have said to each other."""
    for source, target in ((one, other), (other, one)):
        group.turn(source)
        if source != target:
            group.deliver(source, target, len(group.links[source, target].frames))
    group.turn(one)


def check_agreement_and_liveness(group: Group) -> None:
    """At rest every member has delivered all that was broadcast (Px8), and nobody waits for anything."""
    broadcast = {happened.payload for happened in group.journal if isinstance(happened, Broadcast)}
    delivered: dict[str, set[bytes]] = {name: set() for name in group.members}
    for member, _, message in _deliveries(group.journal):
        delivered[member].add(message.payload)
    if len({frozenset(payloads) for payloads in delivered.values()}) > 1:
        raise Violation(AGREEMENT, "some members delivered what others did not")
    for name, payloads in delivered.items():
        if payloads != broadcast:
            raise Violation(LIVENESS, f"{name} never delivers {sorted(broadcast - payloads)}")
    for process in group.members.values():
        if not process.idle or process.backlog:
            raise Violation(LIVENESS, f"{process.me} still waits for something")


def _deliveries(journal: Journal) -> list[Delivered]:
    return [happened for happened in journal if isinstance(happened, Delivered)]


def _gives_places(packet: Packet) -> bool:
    return hasattr(packet, "position")


def _batches(packet: Packet) -> tuple[Batch, ...]:
    return getattr(packet, "batches", ())


def _ids(batch: Batch) -> list[MessageId]:
    return [MessageId(batch.sender, batch.level, batch.first + index) for index in range(batch.count)]

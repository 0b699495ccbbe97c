"""The guarantees, each as a function that checks the journal of a group.

They know protocols only by their packets' `batches`, `position` and `window`, as traces do, so they hold for
every protocol in the registry. Messages that are delivered together are checked in `joint_delivery`.
"""

from collections import defaultdict

from priocast.core.guarantees import (
    AGREEMENT,
    BOUNDED_WINDOW,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    LIVENESS,
    TOTAL_ORDER,
)
from priocast.core.identity import MessageId
from priocast.core.protocol import Packet
from priocast.core.starvation import Starvation
from priocast.protocols import find_protocol
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.flow.window import WINDOW_FIRST
from priocast.protocols.numbering.packets import NumberGrant
from protocols.harness import Broadcast, Delivered, Group, Journal, Queued, Received, Sent, Violation
from protocols.joint_delivery import check_joint_delivery
from protocols.ranked_queue import RankedQueue
from protocols.stamps import check_stamps


def check_all(group: Group) -> None:
    """All guarantees of a group in which nothing more happens."""
    prioritised = group.options.prioritised
    check_integrity(group.journal)
    check_total_order(group.journal)
    check_fifo(group.journal, among_equals=prioritised)
    check_priority(group)
    check_window(group)
    check_stamps(group.journal)
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
    """Every member delivers the same message at the same position, from position 0 on without gaps (Px11)."""
    at_position: dict[int, MessageId] = {}
    next_position: dict[str, int] = defaultdict(int)
    for member, position, message in _deliveries(journal):
        if position != next_position[member]:
            raise Violation(
                TOTAL_ORDER, f"{member} delivers position {position} after {next_position[member] - 1}"
            )
        next_position[member] += 1
        if at_position.setdefault(position, message.id) != message.id:
            raise Violation(TOTAL_ORDER, f"{at_position[position]} and {message.id} are both at {position}")


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


def check_priority(group: Group) -> None:
    """What leaves a queue has the best rank of all that waits in it (techniques, 6.1 and 6.2).

    So has what is delivered together, each kind by its own rule (techniques, 6.3, 6.4 and 8).
    """
    protocol = find_protocol(group.order)
    policy = group.options.policy
    for name in group.members:
        if protocol.SENDS_BY_PRIORITY or not group.options.prioritised:
            _check_sending(group, name, policy)
        if protocol.PRIORITIES_ACT == "sequencing":
            _check_sequencing(group, name, policy)
    check_joint_delivery(group)


def _check_sending(group: Group, name: str, policy: Starvation) -> None:
    """A member sends its own messages by rank."""
    queue = RankedQueue(policy)
    for happened in group.journal:
        if isinstance(happened, Queued) and happened.member == name:
            queue.enter(happened.batch, happened.now)
        elif isinstance(happened, Sent) and happened.member == name:
            for batch in getattr(happened.packet, "batches", ()):
                if batch.sender.name == name:
                    queue.leave(batch)


def _check_sequencing(group: Group, name: str, policy: Starvation) -> None:
    """A member gives places by rank to what it has received."""
    queue = RankedQueue(policy)
    for happened in group.journal:
        if not isinstance(happened, Sent | Received) or happened.member != name:
            continue
        packet = happened.packet
        if isinstance(happened, Received) and not _gives_places(packet):
            for batch in getattr(packet, "batches", ()):
                queue.enter(batch, happened.now)
        elif isinstance(happened, Sent) and _gives_places(packet):
            for messages in packet.messages:
                queue.leave(messages)
        else:
            for messages in packet.messages:
                queue.forget(messages, for_good=_gives_places(packet))


def check_window(group: Group) -> None:
    """What is on its way into the order and not consumed by the slowest member stays within the window.

    It is consumption that counts and not receipt: only then does the backlog wait where priorities act.
    """
    protocol = find_protocol(group.order)
    if protocol.PRIORITIES_ACT == "consuming":
        return  # What is queued can be overtaken there: nothing has to wait for its consumption.
    if issubclass(protocol, PacedProtocol):
        for name in group.members:
            _check_share(group, name)
    elif not hasattr(protocol, "INNER"):
        _check_places(group)


def _check_places(group: Group) -> None:
    """What has a place, or may take one, and was not consumed by the slowest.

    Who gives out numbers before it has the messages does not know their bytes: each such class has a test of
    its own for what it makes of that.
    """
    options = group.options
    numbers_first = any(
        isinstance(each, Sent) and isinstance(each.packet, NumberGrant) for each in group.journal
    )
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
        end = _first_place_of_messages(happened.packet)
        if end is None:
            continue
        slowest = min(consumed.values())
        for messages in happened.packet.messages:
            bytes_left = options.window_bytes - sum(size for place, size in placed if place > slowest)
            if bytes_left <= 0 and not numbers_first:
                raise Violation(BOUNDED_WINDOW, f"{messages} is ordered although the window is full")
            end += messages.count
            placed.append((end, len(getattr(messages, "block", b""))))
        if end - slowest > granted:
            raise Violation(
                BOUNDED_WINDOW,
                f"{end - slowest} messages are ordered, not consumed; the window is {granted}",
            )


def _check_share(group: Group, name: str) -> None:
    """What a member has sent of its own, and the slowest has not consumed."""
    options, size = group.options, len(group.members)
    granted = max(1, (options.window or WINDOW_FIRST) // size)
    consumed = dict.fromkeys(group.members, 0)
    sent = 0
    for happened in group.journal:
        if isinstance(happened, Delivered) and happened.message.sender.name == name:
            consumed[happened.member] += 1
        if not isinstance(happened, Sent):
            continue
        if options.window is None and happened.to == name:
            granted = max(granted, getattr(happened.packet, "window", 0))
        for batch in getattr(happened.packet, "batches", ()):
            sent += batch.count if happened.member == name and batch.sender.name == name else 0
        if sent - min(consumed.values()) > granted:
            raise Violation(BOUNDED_WINDOW, f"{name} has {sent - min(consumed.values())} in flight")


def check_waiting(group: Group) -> None:
    """A member that cannot order more names a bottleneck, and continues when that one has consumed."""
    group.settle(rounds_max=1_000, consumers=())
    for name, member in group.members.items():
        protocol = member.protocol
        waits_for, place = protocol.inspect(0).bottleneck, protocol.position_next
        if waits_for is None:
            if protocol.inspect(group.now).queues and not any(
                other.protocol.inspect(0).bottleneck for other in group.members.values()
            ):
                raise Violation(LIVENESS, f"messages wait at {name}, and no member names a bottleneck")
            continue
        group.settle(rounds_max=1_000, consumers=[waits_for.name])
        if protocol.inspect(0).bottleneck == waits_for and protocol.position_next == place:
            raise Violation(LIVENESS, f"{name} waits for {waits_for.name}, which cannot end the wait")


def check_agreement_and_liveness(group: Group) -> None:
    """In the end every member has delivered all broadcasts (Px8), and all are idle."""
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
            raise Violation(LIVENESS, f"{process.me} is not idle")


def _deliveries(journal: Journal) -> list[Delivered]:
    return [happened for happened in journal if isinstance(happened, Delivered)]


def _gives_places(packet: Packet) -> bool:
    return _first_place_of_messages(packet) is not None


def _first_place_of_messages(packet: Packet) -> int | None:
    """The place of the first message of a packet that gives places; if it has none, the end of its places."""
    if isinstance(packet, NumberGrant):
        last = packet.ranges[-1]
        return last.position + last.count
    place: int | None = getattr(packet, "position", None)
    return place

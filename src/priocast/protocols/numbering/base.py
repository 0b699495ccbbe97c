"""Numbers for messages: members ask for them, get them, and broadcast with them, the most urgent first.

All of the unicast-unicast-broadcast classes but who gives the numbers out: the asking sender, whoever serves
the asks, and the destination, for which a message has its place by its number.
"""

from abc import abstractmethod
from collections import deque
from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import CONTROL, Batch
from priocast.core.priority import class_of, limits_by_class
from priocast.core.protocol import WINDOW_MAX, Broadcast, OrderingOptions, Packet, PacketId
from priocast.core.view import View
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.grants import FRAMES_PER_TURN, Batches, BottleneckName, Consumed, fill_frame
from priocast.protocols.flow.submission_validator import SubmissionValidator
from priocast.protocols.numbering.requests import NumberRequest, NumberRequestQueue, NumberReservations

LEVELS = CONTROL + 1


class RequestNumbers(Packet, frozen=True, tag="ask"):
    """From a member to whoever gives out numbers: I need so many, the most urgent first."""

    wants: Annotated[tuple[NumberRequest, ...], msgspec.Meta(min_length=1, max_length=LEVELS)]


class NumberGrant(Packet, frozen=True, tag="grant"):
    """To a member: `count` numbers are yours, from `position` on.

    `bottleneck` names the member for whose grant the next ones wait, if they do.
    """

    position: Annotated[int, msgspec.Meta(ge=0)]
    count: Annotated[int, msgspec.Meta(ge=1)]
    bottleneck: BottleneckName = ""


class Numbers:
    """Numbers that one member got from another and has not used yet."""

    __slots__ = ("bottleneck", "count", "giver", "position")

    def __init__(self, giver: ProcessId, position: int, count: int, bottleneck: str = "") -> None:
        self.giver = giver
        self.position = position
        self.count = count
        self.bottleneck = bottleneck

    def use(self, count: int) -> None:
        self.position += count
        self.count -= count
        assert self.count >= 0


class NumberedBase(Packet, frozen=True):
    """From a member to all: these have the places from `position` on, as they were granted."""

    TO_ALL = True

    position: Annotated[int, msgspec.Meta(ge=0)]
    batches: Batches
    bottleneck: BottleneckName = ""

    @property
    def count(self) -> int:
        """How many numbers it uses."""
        return sum(batch.count for batch in self.batches)


class NumberingProtocol(FlowControlledProtocol):
    """A member that asks for numbers and uses them, and may have to give them out."""

    PRIORITIES_ACT = "sequencing"

    _grants: NumberReservations

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        # sender
        self._unasked: dict[int, tuple[int, int]] = {}
        self._asked = 0
        self._numbers: deque[Numbers] = deque()
        self._numbers_end = position
        self._ask_limits = limits_by_class(options.submit_max, options.prioritised)
        # giver
        self._requests = NumberRequestQueue(options.policy)
        self._asked_by = dict.fromkeys(view.members, 0)
        self._given: dict[ProcessId, deque[Numbers]] = {member: deque() for member in view.members}
        self._given_first = self._given_end = position
        # destination
        self._validator = SubmissionValidator(view, WINDOW_MAX)
        self._ahead: dict[int, tuple[NumberedBase, PacketId]] = {}

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._requests.count - self._asked_by[self.me]

    @property
    def idle(self) -> bool:
        return self.settled and not self._requests

    def bottleneck(self) -> ProcessId | None:
        """Nobody has to consume while numbers that this member gave out have not come with their messages."""
        if not self._requests or self.position_next < self._given_end:
            return None
        return self._grants.bottleneck(self._requests.head()[1])

    def waiting(self, now: int) -> list[tuple[int, int, int]]:
        return self._requests.waiting(now) or super().waiting(now)

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        super().on_broadcast(event, now)
        batch = event.batch
        level = batch.urgency if self.options.prioritised else batch.level
        count, size = self._unasked.get(level, (0, 0))
        self._unasked[level] = count + batch.count, size + len(batch.block)

    # Sender

    def _ask(self, giver: ProcessId) -> None:
        """RequestNumbers for numbers for what is new, the most urgent first, as far as there is credit."""
        if not self._unasked or giver in self.blocked:
            return
        wants = []
        for level in sorted(self._unasked, reverse=True):
            count, size = self._unasked[level]
            asked = min(count, self._ask_limits[class_of(level)] - self._asked)
            if asked <= 0:
                continue
            want = NumberRequest(level, asked, size * asked // count)
            self._unasked[level] = count - asked, size - want.size
            if asked == count:
                del self._unasked[level]
            self._asked += asked
            wants.append(want)
        if wants:
            self.send(giver, RequestNumbers(tuple(wants)))

    def _on_grant(self, giver: ProcessId, grant: NumberGrant) -> None:
        if grant.position < self._numbers_end or grant.count > self._asked:
            raise PeerFault(
                f"{giver} grants {grant.count} numbers from {grant.position} on; {self._asked} were asked "
                f"for, not before {self._numbers_end}"
            )
        self._asked -= grant.count
        self._numbers.append(Numbers(giver, grant.position, grant.count, grant.bottleneck))
        self._numbers_end = grant.position + grant.count

    def _send_numbered(self) -> None:
        """Bind the numbers, in their order, to the most urgent messages that there are now."""
        for _ in range(FRAMES_PER_TURN):
            if self.blocked or not self._numbers:
                return
            numbers = self._numbers[0]
            position = numbers.position
            batches = fill_frame(self.outgoing, lambda _: self._numbers[0].count, self._bind)
            self.send_all(self._numbered(position, batches, numbers))
            if not numbers.count:
                self._numbers.popleft()
        self.more_to_do()

    def _bind(self, batch: Batch) -> None:
        self._numbers[0].use(batch.count)
        self.in_flight.sent(batch)

    @abstractmethod
    def _numbered(self, position: int, batches: tuple[Batch, ...], numbers: Numbers) -> NumberedBase:
        """The packet that carries these messages, which have the first of these numbers."""

    # Whoever gives out numbers

    def _on_ask(self, sender: ProcessId, wants: tuple[NumberRequest, ...], now: int) -> None:
        for want in wants:
            self._ask_waits(sender, want, now)

    def _ask_waits(self, sender: ProcessId, want: NumberRequest, since: int) -> None:
        self._asked_by[sender] += want.count
        if self._asked_by[sender] > self.options.submit_max:
            raise PeerFault(
                f"{sender} asks for more than the {self.options.submit_max} numbers that it has credit for"
            )
        self._requests.put(sender, want, since)

    def _give(self, number: int) -> int:
        """Give out numbers from this one on, a turn's worth, as the asks rank; return which is next then."""
        if number != self._given_end:
            self._given_first = number
        gifts: list[tuple[ProcessId, Numbers]] = []
        while self._requests:
            sender, level = self._requests.head()
            room = self._grants.of_level(level)
            if room <= 0 or sender in self.blocked:
                break
            if not gifts or gifts[-1][0] != sender:
                if len(gifts) == FRAMES_PER_TURN:
                    self.more_to_do()
                    break
                gifts.append((sender, Numbers(self.me, number, 0)))
            count, size = self._requests.take(room, self._grants.bytes_left)
            self._asked_by[sender] -= count
            self._grants.reserve(count, size)
            gifts[-1][1].count += count
            number += count
        bottleneck = self._grants.bottleneck(self._requests.head()[1]) if self._requests else None
        for sender, numbers in gifts:
            self._given[sender].append(numbers)
            self.send(
                sender, NumberGrant(numbers.position, numbers.count, bottleneck.name if bottleneck else "")
            )
        self._given_end = number
        return number

    def _check_given(self, sender: ProcessId, numbered: NumberedBase) -> None:
        """Numbers that this member gave out are used by who got them, and in their order."""
        given = self._given[sender]
        count = numbered.count
        if not given or numbered.position != given[0].position or count > given[0].count:
            raise PeerFault(f"{sender} uses numbers from {numbered.position} on, which it was not granted")
        given[0].use(count)
        if not given[0].count:
            given.popleft()

    # Destination

    def _on_numbered(self, sender: ProcessId, numbered: NumberedBase, packet_id: PacketId) -> None:
        position = numbered.position
        if position < self.position_next or position in self._ahead:
            raise PeerFault(f"{sender} uses number {position}, which was used before")
        if position > self.position_next + WINDOW_MAX:
            raise PeerFault(f"{sender} uses number {position}, which no window allows")
        if self._given_first <= position < self._given_end:
            self._check_given(sender, numbered)
        for batch in numbered.batches:
            self._validator.check(sender, batch)
        self._ahead[position] = numbered, packet_id
        self._place_next()

    def _place_next(self) -> None:
        """Place what has the next numbers; the rest waits for those before it."""
        while (found := self._ahead.pop(self.position_next, None)) is not None:
            numbered, packet_id = found
            self.depends_on(packet_id)
            self._on_next(numbered)
            for batch in numbered.batches:
                self._validator.placed(batch)
                self._on_placed(batch)
                self.place(batch, numbered.bottleneck == self.me.name)

    def _on_next(self, numbered: NumberedBase) -> None:
        """All places before these are known."""

    def _on_placed(self, batch: Batch) -> None:
        """The next numbers have come with these messages."""
        self._grants.placed(batch)

    def _on_report(self, sender: ProcessId, consumed: Consumed) -> None:
        self._grants.granted(sender, consumed.total, consumed.window)

"""Fixed sequencer, unicast-unicast-broadcast: members ask the sequencer for numbers, and broadcast with them.

Gives: Integrity, Total order, Agreement, FIFO among equals; prioritised: Priority among those who ask and
    among the messages of each sender, Bounded overtaking by the chosen starvation policy. Plain: FIFO order.
Costs: three hops and n + 1 frames a message (an ask, a grant, n - 1 copies), shared by all messages of a
    frame; messages pass nobody but their sender and their destinations. One report of consumption per
    member and quarter of a window.
Orders: the sequencer decides whose turn it is, each sender which of its messages takes the turn.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sequencer's queue of asks (priority sequencing) and in the sender's outgoing queue.
Reference: the techniques paper, sections 5.1 and 6.1.
Diverges: as `sequencer-ub`, numbers are given out only as far as every member has room, so that asks wait.
    A number is bound late: not to the message that it was asked for, but to the most urgent one that its
    sender has when it sends. Grants are used in the order of their numbers, or FIFO among equals would
    break. Numbers are never given back, so a sender asks for no more than it has, and what it has does not
    get less. The window in bytes counts what was asked for until the messages are there. If the view ends,
    the first number without a message ends the order, and what has a number behind it is sent again.
"""

from collections import deque
from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.flow import FRAMES_PER_TURN, Batches, Consumed, HeldBy, fill_frame
from priocast.core.identity import ProcessId
from priocast.core.message import CONTROL, Batch
from priocast.core.priority import class_of, limits_by_class
from priocast.core.protocol import Broadcast, OrderingOptions, Packet, Received, Turn
from priocast.core.submissions import Submissions
from priocast.core.view import View
from priocast.core.window import WINDOW_MAX
from priocast.ordering.asks import Asks, Promises, Want
from priocast.ordering.fixed_sequencer import FixedSequencer

_LEVELS = CONTROL + 1


class Ask(Packet, frozen=True, tag="ask"):
    """From a member to the sequencer: give me numbers for so many messages, the most urgent first."""

    wants: Annotated[tuple[Want, ...], msgspec.Meta(min_length=1, max_length=_LEVELS)]


class Grant(Packet, frozen=True, tag="grant"):
    """From the sequencer to a member: `count` numbers are yours, from `position` on.

    `held_by` names the member for whose grant the next ones wait, if they do.
    """

    position: Annotated[int, msgspec.Meta(ge=0)]
    count: Annotated[int, msgspec.Meta(ge=1)]
    held_by: HeldBy = ""


class Numbered(Packet, frozen=True, tag="numbered"):
    """From a member to all: these have the places from `position` on, as the sequencer granted."""

    TO_ALL = True

    position: Annotated[int, msgspec.Meta(ge=0)]
    batches: Batches
    held_by: HeldBy = ""

    @property
    def count(self) -> int:
        """How many numbers it uses."""
        return sum(batch.count for batch in self.batches)


class _Numbers:
    """Numbers that one member got and has not used yet."""

    __slots__ = ("count", "held_by", "position")

    def __init__(self, position: int, count: int, held_by: str) -> None:
        self.position = position
        self.count = count
        self.held_by = held_by

    @property
    def end(self) -> int:
        return self.position + self.count

    def use(self, count: int) -> None:
        self.position += count
        self.count -= count
        assert self.count >= 0


class SequencerUub(FixedSequencer):
    """A member's part in the protocol; the view's coordinator is the sequencer, too."""

    NAME = "sequencer-uub"
    PACKETS = (Ask, Grant, Numbered, Consumed)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        # sender
        self._unasked: dict[int, tuple[int, int]] = {}
        self._asked = 0
        self._numbers: deque[_Numbers] = deque()
        self._numbers_end = position
        self._ask_limits = limits_by_class(options.submit_max, options.prioritised)
        # sequencer
        self._asks = Asks(options.policy)
        self._asked_by = dict.fromkeys(view.members, 0)
        self._given: dict[ProcessId, deque[_Numbers]] = {member: deque() for member in view.members}
        self._grants: Promises = Promises(view, options)
        # destination
        self._submissions = Submissions(view, WINDOW_MAX)
        self._ahead: dict[int, tuple[Numbered, tuple[int, int]]] = {}

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._asks.count - self._asked_by[self.me]

    @property
    def idle(self) -> bool:
        return self.settled and not self._asks

    def waiting_for(self) -> ProcessId | None:
        """Nobody has to consume while numbers that were given out have not come back with their messages."""
        if not self._asks or self.position_next < self._number_next:
            return None
        return self._grants.held_by(self._asks.head()[1])

    def waiting(self, now: int) -> list[tuple[int, int, int]]:
        return self._asks.waiting(now) if self.me == self._sequencer else super().waiting(now)

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        super().on_broadcast(event, now)
        batch = event.batch
        level = batch.urgency if self.options.prioritised else batch.level
        count, size = self._unasked.get(level, (0, 0))
        self._unasked[level] = count + batch.count, size + len(batch.block)

    def on_turn(self, event: Turn, now: int) -> None:
        self._ask()
        if self.me == self._sequencer:
            self._grant()
        self._send_numbered()

    def on_received(self, event: Received, now: int) -> None:
        match event.packet:
            case Numbered() as numbered:
                self._on_numbered(event.sender, numbered)
            case Ask(wants=wants):
                self._on_ask(event.sender, wants, now)
            case Grant() as grant:
                self._on_grant(event.sender, grant)
            case Consumed() as consumed:
                self._on_report(event.sender, consumed)

    # Sender

    def _ask(self) -> None:
        """Ask for numbers for what is new, the most urgent first, as far as there is credit."""
        if not self._unasked or self._sequencer in self.blocked:
            return
        wants = []
        for level in sorted(self._unasked, reverse=True):
            count, size = self._unasked[level]
            asked = min(count, self._ask_limits[class_of(level)] - self._asked)
            if asked <= 0:
                continue
            want = Want(level, asked, size * asked // count)
            self._unasked[level] = count - asked, size - want.size
            if asked == count:
                del self._unasked[level]
            self._asked += asked
            wants.append(want)
        if wants:
            self.send(self._sequencer, Ask(tuple(wants)))

    def _on_grant(self, sender: ProcessId, grant: Grant) -> None:
        if sender != self._sequencer or grant.position < self._numbers_end or grant.count > self._asked:
            raise PeerFault(
                f"{sender} grants {grant.count} numbers from {grant.position} on; {self._asked} were "
                f"asked for, to come from {self._sequencer} and not before {self._numbers_end}"
            )
        self._asked -= grant.count
        self._numbers.append(_Numbers(grant.position, grant.count, grant.held_by))
        self._numbers_end = grant.position + grant.count

    def _send_numbered(self) -> None:
        """Bind the numbers, in their order, to the most urgent messages that there are now."""
        for _ in range(FRAMES_PER_TURN):
            if self.blocked or not self._numbers:
                return
            numbers = self._numbers[0]
            position = numbers.position
            batches = fill_frame(self.outgoing, lambda _: self._numbers[0].count, self._bind)
            self.send_all(Numbered(position, batches, numbers.held_by))
            if not numbers.count:
                self._numbers.popleft()
        self.more_to_do()

    def _bind(self, batch: Batch) -> None:
        self._numbers[0].use(batch.count)
        self.under_way.sent(batch)

    # Sequencer

    def _on_ask(self, sender: ProcessId, wants: tuple[Want, ...], now: int) -> None:
        self._check_sequencer(sender)
        self._asked_by[sender] += sum(want.count for want in wants)
        if self._asked_by[sender] > self.options.submit_max:
            raise PeerFault(
                f"{sender} asks for more than the {self.options.submit_max} numbers that it has credit for"
            )
        for want in wants:
            self._asks.put(sender, want, now)

    def _grant(self) -> None:
        """Give out numbers in the order of the asks; those that one member gets together are one grant."""
        grants: list[tuple[ProcessId, _Numbers]] = []
        while self._asks:
            sender, level = self._asks.head()
            room = self._grants.of_level(level)
            if room <= 0 or sender in self.blocked:
                break
            if len(grants) == FRAMES_PER_TURN:
                self.more_to_do()
                break
            count, size = self._asks.take(room, self._grants.bytes_left)
            self._asked_by[sender] -= count
            self._grants.promised(count, size)
            if grants and grants[-1][0] == sender:
                grants[-1][1].count += count
            else:
                grants.append((sender, _Numbers(self._number_next, count, "")))
            self._number_next += count
        held_by = self._grants.held_by(self._asks.head()[1]) if self._asks else None
        for sender, numbers in grants:
            self._given[sender].append(numbers)
            name = held_by.name if held_by else ""
            self.send(sender, Grant(numbers.position, numbers.count, name))

    def _check_given(self, sender: ProcessId, numbered: Numbered) -> None:
        given = self._given[sender]
        if not given or numbered.position != given[0].position or numbered.count > given[0].count:
            raise PeerFault(f"{sender} uses numbers from {numbered.position} on, which it was not granted")
        given[0].use(numbered.count)
        if not given[0].count:
            given.popleft()

    # Destination

    def _on_numbered(self, sender: ProcessId, numbered: Numbered) -> None:
        if numbered.position < self.position_next or numbered.position in self._ahead:
            raise PeerFault(f"{sender} uses number {numbered.position}, which was used before")
        if self.me == self._sequencer:
            self._check_given(sender, numbered)
        for batch in numbered.batches:
            self._submissions.check(sender, batch)
        self._ahead[numbered.position] = numbered, self.mark
        self._place_next()

    def _place_next(self) -> None:
        """Place what has the next numbers; the rest waits for those before it."""
        while (found := self._ahead.pop(self.position_next, None)) is not None:
            numbered, mark = found
            self.rests_on(mark)
            for batch in numbered.batches:
                self._submissions.placed(batch)
                self.place(batch, numbered.held_by == self.me.name)
                if self.me == self._sequencer:
                    self._grants.placed(batch)

"""The states of single members, each made once, and what follows from an input in each of them.

A member's next state depends on its own state and on the input, and on nothing else. So the protocol's code
runs once for each pair of both that occurs, however often it occurs in the states of the whole group: those
are then no more than the numbers of the members' states and of the contents of the channels.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from priocast.core.guarantees import INTEGRITY
from priocast.core.protocol import Packet
from priocast.exploration.interner import Interner
from priocast.exploration.invariants import check_invariants
from priocast.exploration.member_model import MemberModel, Sent
from priocast.exploration.scenario import ExplorationScenario
from priocast.exploration.state_copy import copy_state
from priocast.exploration.state_digest import StateDigester
from priocast.exploration.violation import OWN_FAULT, PropertyViolation, faults_found

SAY, CONSUME, ACT, RECEIVE, FIRE = range(5)


class Action(NamedTuple):
    """What happens at one member; a packet by its number, a timer by its name."""

    kind: int
    sender: int = -1
    packet: int = -1
    timer: str = ""


class Transition(NamedTuple):
    """What a move leads to: the member's next state, what it sends to whom, or what it breaks."""

    state: int
    sent: tuple[tuple[int, int], ...]
    violation: PropertyViolation | None = None


class MemberState:
    """One state of one member: what it may do by itself, and what the checks look at."""

    __slots__ = (
        "consumed",
        "fires",
        "held",
        "idle",
        "moves",
        "placed_before",
        "said",
        "sent_to_all",
        "snapshot",
        "steps",
    )

    def __init__(self, station: MemberModel, snapshot: MemberModel, sent_to_all: tuple[int, ...]) -> None:
        self.snapshot = snapshot
        self.consumed = tuple(station.consumed)
        self.placed_before = dict(station.placed_before)
        self.held = tuple(station.held)
        self.said = station.said
        self.sent_to_all = sent_to_all
        self.idle = station.protocol.idle and not station.protocol.backlog
        self.steps: dict[Action, Transition] = {}
        self.fires = [Action(FIRE, timer=timer) for timer in station.timers]
        self.moves: list[Action] = []
        if station.to_say:
            self.moves.append(Action(SAY))
        if station.head() is not None:
            self.moves.append(Action(CONSUME))
        if station.scenario.free_turns and station.has_work:
            self.moves.append(Action(ACT))


class MemberStates:
    """All states of members and all packets that were met, by number."""

    def __init__(self, scenario: ExplorationScenario) -> None:
        self._scenario = scenario
        self.packets = Interner()
        self._digest = StateDigester().digest
        self._numbers: dict[tuple[bytes, int | None], int] = {}
        self._states: list[MemberState] = []
        self.steps_made = 0
        packets: Any = scenario.protocol.PACKETS
        self._decode = msgspec.msgpack.Decoder(_union(packets)).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self.first = [self._number(MemberModel(scenario, rank)) for rank in range(scenario.processes)]

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, number: int) -> MemberState:
        return self._states[number]

    def step(self, number: int, move: Action) -> Transition:
        """What a move leads to in a member's state."""
        steps = self._states[number].steps
        step = steps.get(move)
        if step is None:
            step = steps[move] = self._run(number, move)
        return step

    def restore(self, number: int) -> MemberModel:
        """A member in this state."""
        station: MemberModel = copy_state(self._states[number].snapshot)
        return station

    def _run(self, number: int, move: Action) -> Transition:
        self.steps_made += 1
        station = self.restore(number)
        try:
            with faults_found(station.name):
                sent = self.carry_out(station, move)
                packets = tuple((rank, self._number_of(packet)) for rank, packet in sent)
                return Transition(self._number(station), packets)
        except PropertyViolation as violation:
            return Transition(number, (), violation)

    def carry_out(self, station: MemberModel, move: Action) -> Sent:
        """Let a move happen."""
        if move.kind == RECEIVE:
            return station.receive(move.sender, self.packets[move.packet])
        if move.kind == FIRE:
            return station.fire(move.timer)
        does: dict[int, Callable[[], Sent]] = {SAY: station.say, CONSUME: station.consume, ACT: station.act}
        return does[move.kind]()

    def _number(self, station: MemberModel) -> int:
        offered = station.head()  # Asking may tidy up, once.
        key = (self._digest(station), offered)
        number = self._numbers.get(key)
        if number is None:
            if station.head() != offered or self._digest(station) != key[0]:
                raise PropertyViolation(
                    OWN_FAULT, f"{station.name} is another one after it was asked for its head"
                )
            sent_to_all = tuple(map(self._number_of, station.sent_to_all))
            local = MemberState(station, station, sent_to_all)
            check_invariants(copy_state(station.protocol))  # looking into the queues may tidy them up
            number = self._numbers[key] = len(self._states)
            self._states.append(local)
        return number

    def _number_of(self, packet: Packet) -> int:
        if packet not in self.packets and self._decode(self._encode(packet)) != packet:
            raise PropertyViolation(INTEGRITY, f"{packet} is another one when it arrives")
        return self.packets.number(packet)


def _union(packets: Iterable[Any]) -> Any:
    first, *others = packets
    for packet in others:
        first |= packet
    return first

"""The states of single members, each stored once, and the transitions between them.

A member's next state depends on its own state and on the action, and on nothing else. So the protocol's code
runs once for each pair that occurs, however often the pair occurs in the states of the whole group: those are
only the numbers of the members' states and of the contents of the channels.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from priocast.core.guarantees import INTEGRITY
from priocast.core.protocol import Packet
from priocast.exploration.interner import Interner
from priocast.exploration.invariants import check_invariants
from priocast.exploration.member_model import MemberModel, SentPackets
from priocast.exploration.scenario import ExplorationScenario
from priocast.exploration.state_copy import copy_state
from priocast.exploration.state_digest import StateDigester
from priocast.exploration.violation import OWN_FAULT, PropertyViolation, faults_as_violations

BROADCAST, CONSUME, TURN_STEP, RECEIVE, FIRE = range(5)


class Action(NamedTuple):
    """What happens at one member; a packet by its number, a timer by its name."""

    kind: int
    sender: int = -1
    packet: int = -1
    timer: str = ""


class Transition(NamedTuple):
    """Where an action leads: the member's next state, what it sends to whom, or what it violates."""

    state: int
    sent: tuple[tuple[int, int], ...]
    violation: PropertyViolation | None = None


class MemberState:
    """One state of one member: the actions that it enables by itself, and what the checks look at."""

    __slots__ = (
        "actions",
        "broadcast",
        "consumed",
        "idle",
        "model",
        "ordered_before",
        "received_counts",
        "sent_to_all",
        "timer_actions",
        "transitions",
    )

    def __init__(self, model: MemberModel, sent_to_all: tuple[int, ...]) -> None:
        self.model = model
        self.consumed = tuple(model.consumed)
        self.ordered_before = dict(model.ordered_before)
        self.received_counts = tuple(model.received_counts)
        self.broadcast = model.broadcast_messages
        self.sent_to_all = sent_to_all
        self.idle = model.protocol.idle and not model.protocol.backlog
        self.transitions: dict[Action, Transition] = {}
        self.timer_actions = [Action(FIRE, timer=timer) for timer in model.timers]
        self.actions: list[Action] = []
        if model.to_broadcast:
            self.actions.append(Action(BROADCAST))
        if model.head() is not None:
            self.actions.append(Action(CONSUME))
        if model.scenario.free_turns and model.has_work:
            self.actions.append(Action(TURN_STEP))


class MemberStates:
    """All states of members and all packets that were found, by number."""

    def __init__(self, scenario: ExplorationScenario) -> None:
        self._scenario = scenario
        self.packets = Interner()
        self._digest = StateDigester().digest
        self._numbers: dict[tuple[bytes, int | None], int] = {}
        self._states: list[MemberState] = []
        self.steps_run = 0
        packets: Any = scenario.protocol.PACKETS
        self._decode = msgspec.msgpack.Decoder(_union(packets)).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self.initial = [self._number(MemberModel(scenario, rank)) for rank in range(scenario.processes)]

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, number: int) -> MemberState:
        return self._states[number]

    def transition(self, number: int, action: Action) -> Transition:
        """Where an action leads from a member's state."""
        transitions = self._states[number].transitions
        found = transitions.get(action)
        if found is None:
            found = transitions[action] = self._run(number, action)
        return found

    def restore(self, number: int) -> MemberModel:
        """A member in this state, which the caller may change."""
        model: MemberModel = copy_state(self._states[number].model)
        return model

    def _run(self, number: int, action: Action) -> Transition:
        self.steps_run += 1
        model = self.restore(number)
        try:
            with faults_as_violations(model.name):
                sent = self._carry_out(model, action)
                packets = tuple((rank, self._number_packet(packet)) for rank, packet in sent)
                return Transition(self._number(model), packets)
        except PropertyViolation as violation:
            return Transition(number, (), violation)

    def _carry_out(self, model: MemberModel, action: Action) -> SentPackets:
        if action.kind == RECEIVE:
            return model.receive_packet(action.sender, self.packets[action.packet])
        if action.kind == FIRE:
            return model.fire_timer(action.timer)
        by_kind: dict[int, Callable[[], SentPackets]] = {
            BROADCAST: model.broadcast_next,
            CONSUME: model.consume_next,
            TURN_STEP: model.take_turn_step,
        }
        return by_kind[action.kind]()

    def _number(self, model: MemberModel) -> int:
        """The number of a state; the model must not be changed afterwards."""
        offered = model.head()  # the first call may remove obsolete entries from a queue
        key = (self._digest(model), offered)
        number = self._numbers.get(key)
        if number is None:
            if model.head() != offered or self._digest(model) != key[0]:
                raise PropertyViolation(OWN_FAULT, f"{model.name} changes its state when asked for its head")
            state = MemberState(model, tuple(map(self._number_packet, model.sent_to_all)))
            check_invariants(copy_state(model.protocol))  # a check may remove obsolete entries as well
            number = self._numbers[key] = len(self._states)
            self._states.append(state)
        return number

    def _number_packet(self, packet: Packet) -> int:
        if packet not in self.packets and self._decode(self._encode(packet)) != packet:
            raise PropertyViolation(INTEGRITY, f"{packet} differs after encoding and decoding")
        return self.packets.number(packet)


def _union(packets: Iterable[Any]) -> Any:
    first, *others = packets
    for packet in others:
        first |= packet
    return first

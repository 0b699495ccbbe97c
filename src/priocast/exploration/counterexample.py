"""Counterexamples: a violation, and the steps that lead to it, one line for each."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from priocast.core.message import Batch, Reference
from priocast.core.protocol import Packet
from priocast.exploration.member_states import (
    BROADCAST,
    CONSUME,
    FIRE,
    RECEIVE,
    TURN_STEP,
    Action,
    MemberStates,
    Transition,
)
from priocast.exploration.scenario import ExplorationScenario, name_of
from priocast.exploration.violation import PropertyViolation


class Counterexample(NamedTuple):
    """A violation, and the shortest sequence of steps that leads to it."""

    violation: PropertyViolation
    steps: tuple[str, ...]


class StepDescriber:
    """Describes the steps of one scenario."""

    def __init__(self, scenario: ExplorationScenario, member_states: MemberStates) -> None:
        self._scenario = scenario
        self._member_states = member_states

    def describe(self, rank: int, state: int, action: Action) -> str:
        """An action of a member in one of its states, and what it sends."""
        model = self._member_states.restore(state)
        messages = self._scenario.messages
        if action.kind == BROADCAST:
            text = f"broadcasts {messages[model.to_broadcast[0]].name}"
        elif action.kind == CONSUME:
            head = model.head()
            assert head is not None
            text = f"consumes {messages[head].name}"
        elif action.kind == RECEIVE:
            packet = self._member_states.packets[action.packet]
            text = f"receives from {name_of(action.sender)}: {_packet(packet)}"
        elif action.kind == FIRE:
            text = f"timer expires: {action.timer}"
        else:
            assert action.kind == TURN_STEP
            text = "takes a turn"
        transition = self._member_states.transition(state, action)
        return f"{model.name} {text}" + "".join(self._sent(transition, rank))

    def _sent(self, transition: Transition, rank: int) -> Iterable[str]:
        """What the step sends; a packet to all is one line."""
        by_packet: dict[int, list[int]] = {}
        for to, packet in transition.sent:
            by_packet.setdefault(packet, []).append(to)
        for packet, ranks in by_packet.items():
            others = [name_of(to) for to in ranks]
            to_all = len(others) == self._scenario.processes - 1 > 1
            receivers = "all" if to_all else ", ".join(others)
            text = _packet(self._member_states.packets[packet])
            yield f"\n      {name_of(rank)} -> {receivers}: {text}"


def _packet(packet: Packet) -> str:
    fields = [getattr(packet, field) for field in packet.__struct_fields__]
    return " ".join((packet.name(), *(_value(value) for value in fields if value not in ("", ()))))


def _value(value: Any) -> str:
    if isinstance(value, Batch):
        return " ".join(payload.decode() for payload in value.payloads())
    if isinstance(value, Reference):
        return f"{value.sender.name}/{value.level}/{value.first}+{value.count}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))})"
    if isinstance(value, msgspec.Struct):
        fields = ((field, getattr(value, field)) for field in value.__struct_fields__)
        return f"[{' '.join(f'{field}={_value(part)}' for field, part in fields)}]"
    return str(value)

"""How a story is told: one line for each step, with what was sent because of it."""

from collections.abc import Iterable
from typing import Any

import msgspec

from priocast.core.message import Batch, Reference
from priocast.core.protocol import Packet
from priocast.exploration.member_states import (
    ACT,
    CONSUME,
    FIRE,
    RECEIVE,
    SAY,
    Action,
    MemberStates,
    Transition,
)
from priocast.exploration.scenario import ExplorationScenario, name_of


class StepDescriber:
    """Tells what happened in one scenario."""

    def __init__(self, scenario: ExplorationScenario, members: MemberStates) -> None:
        self._scenario = scenario
        self._locals = members

    def tell(self, rank: int, state: int, move: Action) -> str:
        """A move of a member, in one of its own states."""
        station = self._locals.restore(state)
        messages = self._scenario.messages
        if move.kind == SAY:
            does = f"says {messages[station.to_say[0]].name}"
        elif move.kind == CONSUME:
            head = station.head()
            assert head is not None
            does = f"consumes {messages[head].name}"
        elif move.kind == RECEIVE:
            does = f"receives from {name_of(move.sender)}: {_packet(self._locals.packets[move.packet])}"
        elif move.kind == FIRE:
            does = f"finds that the time has come: {move.timer}"
        else:
            assert move.kind == ACT
            does = "acts"
        said = f"{station.name} {does}"
        return said + "".join(self._sent(self._locals.step(state, move), rank))

    def _sent(self, step: Transition, rank: int) -> Iterable[str]:
        """What the step sends; what goes to all is told once."""
        by_packet: dict[int, list[int]] = {}
        for to, packet in step.sent:
            by_packet.setdefault(packet, []).append(to)
        for packet, ranks in by_packet.items():
            others = [name_of(to) for to in ranks]
            all_of_them = len(others) == self._scenario.processes - 1 > 1
            to_whom = "all" if all_of_them else ", ".join(others)
            yield f"\n      {name_of(rank)} -> {to_whom}: {_packet(self._locals.packets[packet])}"


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

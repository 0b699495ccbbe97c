"""The states of the whole group, and the transitions between them.

A state is a tuple of numbers: the state of each member, by rank, and then the content of each channel, by the
ranks of its sender and of its receiver.
"""

from collections.abc import Iterator
from typing import NamedTuple

from priocast.exploration.member_states import RECEIVE, Action, MemberState, MemberStates, Transition
from priocast.exploration.scenario import ExplorationScenario

State = tuple[int, ...]
EMPTY = 0


class GroupTransition(NamedTuple):
    """An action at one member, where it leads that member, and where it leads the group."""

    rank: int
    action: Action
    of_member: Transition
    state: State


class Channels:
    """The contents of channels, each stored once, by number."""

    def __init__(self) -> None:
        self._contents: list[tuple[int, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {(): EMPTY}
        self._longer: dict[tuple[int, int], int] = {}
        self._shorter: list[int | None] = [None]
        self.first: list[int] = [-1]

    def with_packet(self, number: int, packet: int) -> int:
        """The content with one more packet."""
        found = self._longer.get((number, packet))
        if found is None:
            found = self._longer[number, packet] = self._number((*self._contents[number], packet))
        return found

    def without_first(self, number: int) -> int:
        """The content without the packet that arrives first."""
        found = self._shorter[number]
        if found is None:
            found = self._shorter[number] = self._number(self._contents[number][1:])
        return found

    def _number(self, content: tuple[int, ...]) -> int:
        number = self._numbers.setdefault(content, len(self._contents))
        if number == len(self._contents):
            self._contents.append(content)
            self._shorter.append(None)
            self.first.append(content[0])
        return number


class StateGraph:
    """Which transitions a state has, and where they lead."""

    def __init__(self, scenario: ExplorationScenario) -> None:
        self.size = size = scenario.processes
        self.member_states = MemberStates(scenario)
        self.channels = Channels()
        pairs = [(sender, to) for sender in range(size) for to in range(size) if sender != to]
        self._channel = {pair: size + index for index, pair in enumerate(pairs)}
        self._incoming = [
            [(sender, index) for (sender, to), index in self._channel.items() if to == rank]
            for rank in range(size)
        ]
        self.initial: State = (*self.member_states.initial, *(EMPTY,) * len(pairs))

    def members(self, state: State) -> list[MemberState]:
        """The states of the members."""
        return [self.member_states[number] for number in state[: self.size]]

    def transitions(self, state: State) -> Iterator[GroupTransition]:
        """Everything that may happen next; timers expire only when nothing else can happen."""
        channels, members = self.channels, self.member_states
        quiet = True
        for rank in range(self.size):
            number = state[rank]
            for action in members[number].actions:
                quiet = False
                of_member = members.transition(number, action)
                yield GroupTransition(rank, action, of_member, self._next(state, rank, of_member, None))
            for sender, index in self._incoming[rank]:
                if state[index] != EMPTY:
                    quiet = False
                    action = Action(RECEIVE, sender, channels.first[state[index]])
                    of_member = members.transition(number, action)
                    yield GroupTransition(rank, action, of_member, self._next(state, rank, of_member, index))
        if quiet:
            for rank in range(self.size):
                for action in members[state[rank]].timer_actions:
                    of_member = members.transition(state[rank], action)
                    yield GroupTransition(rank, action, of_member, self._next(state, rank, of_member, None))

    def _next(self, state: State, rank: int, of_member: Transition, received_from: int | None) -> State:
        following = list(state)
        following[rank] = of_member.state
        if received_from is not None:
            following[received_from] = self.channels.without_first(following[received_from])
        for to, packet in of_member.sent:
            index = self._channel[rank, to]
            following[index] = self.channels.with_packet(following[index], packet)
        return tuple(following)

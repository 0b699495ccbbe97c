"""The states of the whole group, and the moves between them.

A state is a tuple of numbers: the state of each member, by rank, and then the content of each channel, by the
ranks of its sender and of its receiver.
"""

from collections.abc import Iterator

from priocast.exploration.member_states import RECEIVE, Action, MemberState, MemberStates, Transition
from priocast.exploration.scenario import ExplorationScenario

State = tuple[int, ...]
EMPTY = 0


class Channels:
    """The contents of channels, each made once, by number."""

    def __init__(self) -> None:
        self._contents: list[tuple[int, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {(): EMPTY}
        self._longer: dict[tuple[int, int], int] = {}
        self._shorter: list[int | None] = [None]
        self.first: list[int] = [-1]

    def __getitem__(self, number: int) -> tuple[int, ...]:
        return self._contents[number]

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
    """Which moves there are in a state, and where they lead."""

    def __init__(self, scenario: ExplorationScenario) -> None:
        self.size = size = scenario.processes
        self.locals = MemberStates(scenario)
        self.channels = Channels()
        others = [(sender, to) for sender in range(size) for to in range(size) if sender != to]
        self._channel = {pair: size + index for index, pair in enumerate(others)}
        self._into = [
            [(sender, place) for (sender, to), place in self._channel.items() if to == rank]
            for rank in range(size)
        ]
        self.first: State = (*self.locals.first, *(EMPTY,) * len(others))

    def members(self, state: State) -> list[MemberState]:
        """The states of the members."""
        return [self.locals[number] for number in state[: self.size]]

    def moves(self, state: State) -> Iterator[tuple[int, Action, Transition, State]]:
        """What may happen next, at whom, and where it leads; timers are later than everything else."""
        channels, members = self.channels, self.locals
        quiet = True
        for rank in range(self.size):
            number = state[rank]
            for move in members[number].moves:
                quiet = False
                step = members.step(number, move)
                yield rank, move, step, self._after(state, rank, step, None)
            for sender, place in self._into[rank]:
                if state[place] != EMPTY:
                    quiet = False
                    move = Action(RECEIVE, sender, channels.first[state[place]])
                    step = members.step(number, move)
                    yield rank, move, step, self._after(state, rank, step, place)
        if quiet:
            for rank in range(self.size):
                for move in members[state[rank]].fires:
                    step = members.step(state[rank], move)
                    yield rank, move, step, self._after(state, rank, step, None)

    def _after(self, state: State, rank: int, step: Transition, emptied: int | None) -> State:
        after = list(state)
        after[rank] = step.state
        if emptied is not None:
            after[emptied] = self.channels.without_first(after[emptied])
        for to, packet in step.sent:
            place = self._channel[rank, to]
            after[place] = self.channels.with_packet(after[place], packet)
        return tuple(after)

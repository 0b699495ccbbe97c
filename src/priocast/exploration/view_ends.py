"""The end of the view: at any time, for any of the members.

It ends as membership lets it end. Those who go on are frozen; what any of them holds of the packets to all,
all of them get, in whichever order of their senders; then each knows the rest of the view, and which of its
own messages have no place. Packets to single members are lost, and so is what nobody holds who goes on.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, permutations, zip_longest

from priocast.core.guarantees import INTEGRITY, VIEW_SYNCHRONY
from priocast.core.protocol import Packet
from priocast.exploration.member_model import ViewEnd
from priocast.exploration.member_states import MemberState, MemberStates
from priocast.exploration.properties import PropertyChecks
from priocast.exploration.scenario import ExplorationScenario, name_of
from priocast.exploration.state_graph import State, StateGraph
from priocast.exploration.violation import PropertyViolation, faults_found

#: By sender: the packets that a member lacks, by number.
Missing = tuple[tuple[int, ...], ...]


class ViewEnds:
    """Lets the view end in a state, and looks at what becomes of it."""

    def __init__(self, scenario: ExplorationScenario, space: StateGraph) -> None:
        self._scenario = scenario
        self._locals: MemberStates = space.locals
        self._members = space.members
        self._checks = PropertyChecks(scenario)
        ranks = range(scenario.processes)
        self._survivors = [each for size in ranks for each in combinations(ranks, size + 1)]
        self._ends: dict[tuple[int, Missing], ViewEnd | PropertyViolation] = {}
        self.count = 0

    def check(self, state: State) -> tuple[PropertyViolation, tuple[int, ...]] | None:
        """The first way to end the view here that breaks something, and who goes on then."""
        members = self._members(state)
        for survivors in self._survivors:
            self.count += 1
            try:
                self._check(survivors, state, members)
            except PropertyViolation as violation:
                return violation, survivors
        return None

    def _check(self, survivors: tuple[int, ...], state: State, members: Sequence[MemberState]) -> None:
        lacking = tuple((state[rank], _missing(rank, survivors, members)) for rank in survivors)
        ends = [self._end(number, missing) for number, missing in lacking]
        names = self._scenario.names
        for rank, end in zip(survivors, ends, strict=True):
            if end.consumed != ends[0].consumed:
                raise PropertyViolation(
                    VIEW_SYNCHRONY,
                    f"{name_of(rank)} consumes {names(end.consumed)} of the view, and "
                    f"{name_of(survivors[0])} {names(ends[0].consumed)}",
                )
            placed = [each for each in end.consumed if self._scenario.messages[each].sender == rank]
            if sorted((*placed, *end.unordered)) != list(members[rank].said):
                raise PropertyViolation(
                    INTEGRITY,
                    f"{name_of(rank)} said {names(members[rank].said)}; {names(placed)} have a place, "
                    f"{names(end.unordered)} have none",
                )
        self._checks.at_end(ends[0].consumed, members)

    def _end(self, number: int, missing: Missing) -> ViewEnd:
        """How the view ends for a member in this state that gets these packets."""
        found = self._ends.get((number, missing))
        if found is None:
            try:
                found = self._run(number, missing)
            except PropertyViolation as violation:
                found = violation
            self._ends[number, missing] = found
        if isinstance(found, PropertyViolation):
            raise found
        return found

    def _run(self, number: int, missing: Missing) -> ViewEnd:
        ends: set[ViewEnd] = set()
        for flush in _orders(missing):
            station = self._locals.restore(number)
            packets: list[tuple[int, Packet]] = [
                (sender, self._locals.packets[packet]) for sender, packet in flush
            ]
            with faults_found(station.name):
                ends.add(station.end(packets))
        if len(ends) > 1:
            one, other, *_ = ends
            raise PropertyViolation(
                VIEW_SYNCHRONY,
                f"{station.name} consumes {self._scenario.names(one.consumed)} or "
                f"{self._scenario.names(other.consumed)}: it depends on whose packets come first",
            )
        return ends.pop()


def _missing(rank: int, survivors: tuple[int, ...], members: Sequence[MemberState]) -> Missing:
    """What a member lacks of the packets to all that anybody holds who goes on, by sender."""
    missing = []
    for sender, member in enumerate(members):
        held = max(_held(members, each, sender) for each in survivors)
        missing.append(() if sender == rank else member.sent_to_all[members[rank].held[sender] : held])
    return tuple(missing)


def _held(members: Sequence[MemberState], rank: int, sender: int) -> int:
    """How many packets to all of a sender a member holds: of its own, all."""
    return len(members[rank].sent_to_all) if rank == sender else members[rank].held[sender]


def _orders(missing: Missing) -> Iterator[tuple[tuple[int, int], ...]]:
    """Orders in which packets may come: sender by sender, in every order of the senders, and by turns."""
    flows = [[(sender, packet) for packet in packets] for sender, packets in enumerate(missing) if packets]
    for flow in permutations(flows):
        yield tuple(chain.from_iterable(flow))
    if len(flows) > 1:
        by_turns = chain.from_iterable(zip_longest(*flows))
        yield tuple(each for each in by_turns if each is not None)

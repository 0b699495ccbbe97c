"""The end of the view: in every state, for every set of survivors.

The view ends as membership ends it. The survivors freeze; the flush gives each of them the packets to all
that any of them has received, in every order of their senders; then each knows the rest of the view, and
which of its own messages are unordered. Packets to single members are lost, and so are packets that no
survivor has.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, permutations, zip_longest

from priocast.core.guarantees import INTEGRITY, VIEW_SYNCHRONY
from priocast.core.protocol import Packet
from priocast.exploration.member_model import ViewEnd
from priocast.exploration.member_states import MemberState
from priocast.exploration.properties import PropertyChecks
from priocast.exploration.scenario import ExplorationScenario, name_of
from priocast.exploration.state_graph import State, StateGraph
from priocast.exploration.violation import PropertyViolation, faults_as_violations

#: By sender: the packets that a member lacks, by number.
Missing = tuple[tuple[int, ...], ...]


class ViewEndChecks:
    """Ends the view in a state, and checks the result."""

    def __init__(self, scenario: ExplorationScenario, graph: StateGraph) -> None:
        self._scenario = scenario
        self._member_states = graph.member_states
        self._members = graph.members
        self._checks = PropertyChecks(scenario)
        ranks = range(scenario.processes)
        self._survivors = [each for size in ranks for each in combinations(ranks, size + 1)]
        self._ends: dict[tuple[int, Missing], ViewEnd | PropertyViolation] = {}
        self.count = 0

    def check(self, state: State) -> tuple[PropertyViolation, tuple[int, ...]] | None:
        """The first end of the view in this state that violates a property, and its survivors."""
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
                    f"in this view {name_of(rank)} consumes {names(end.consumed)}, and "
                    f"{name_of(survivors[0])} consumes {names(ends[0].consumed)}",
                )
            ordered = [each for each in end.consumed if self._scenario.messages[each].sender == rank]
            if sorted((*ordered, *end.unordered)) != list(members[rank].broadcast):
                raise PropertyViolation(
                    INTEGRITY,
                    f"{name_of(rank)} broadcast {names(members[rank].broadcast)}; ordered: "
                    f"{names(ordered)}; unordered: {names(end.unordered)}",
                )
        self._checks.at_view_end(ends[0].consumed, members)

    def _end(self, number: int, missing: Missing) -> ViewEnd:
        """How the view ends for a member in this state that receives these packets in the flush."""
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
            model = self._member_states.restore(number)
            packets: list[tuple[int, Packet]] = [
                (sender, self._member_states.packets[packet]) for sender, packet in flush
            ]
            with faults_as_violations(model.name):
                ends.add(model.end_view(packets))
        if len(ends) > 1:
            one, other, *_ = ends
            raise PropertyViolation(
                VIEW_SYNCHRONY,
                f"{model.name} consumes {self._scenario.names(one.consumed)} or "
                f"{self._scenario.names(other.consumed)}, depending on the order of the senders in the flush",
            )
        return ends.pop()


def _missing(rank: int, survivors: tuple[int, ...], members: Sequence[MemberState]) -> Missing:
    """The packets to all that a member lacks and another survivor has, by sender."""
    missing = []
    for sender, member in enumerate(members):
        received = max(_received(members, each, sender) for each in survivors)
        own_count = members[rank].received_counts[sender]
        missing.append(() if sender == rank else member.sent_to_all[own_count:received])
    return tuple(missing)


def _received(members: Sequence[MemberState], rank: int, sender: int) -> int:
    """How many packets to all of a sender a member has: of its own, all."""
    return len(members[rank].sent_to_all) if rank == sender else members[rank].received_counts[sender]


def _orders(missing: Missing) -> Iterator[tuple[tuple[int, int], ...]]:
    """Orders in which packets may come: sender by sender, in every order of the senders, and alternating."""
    flows = [[(sender, packet) for packet in packets] for sender, packets in enumerate(missing) if packets]
    for flow in permutations(flows):
        yield tuple(chain.from_iterable(flow))
    if len(flows) > 1:
        alternating = chain.from_iterable(zip_longest(*flows))
        yield tuple(each for each in alternating if each is not None)

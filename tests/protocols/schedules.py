"""Schedules: who does what and when in a group, drawn by Hypothesis so that a failing one shrinks."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from hypothesis import strategies as st

from priocast.core.guarantees import LIVENESS
from priocast.core.message import TO_ALL, Scope
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Starvation
from protocols.guarantees import check_all, check_waiting
from protocols.harness import Group, Violation

MILLISECOND = 1_000_000
NAMES = ["a", "b", "c", "d"]


Serials = Iterator[int]


class Broadcast(NamedTuple):
    member: int
    priority: int
    sizes: tuple[int, ...]
    scope: Scope

    def happen(self, group: Group, serials: Serials) -> None:
        payloads = [b"%d%s" % (next(serials), b"." * size) for size in self.sizes]
        group.broadcast(_name(group, self.member), self.priority, payloads, self.scope)


class Turn(NamedTuple):
    member: int

    def happen(self, group: Group, _: Serials) -> None:
        group.turn(_name(group, self.member))


class Act(NamedTuple):
    """One step of a turn: what a member says to itself has not come back yet."""

    member: int

    def happen(self, group: Group, _: Serials) -> None:
        group.members[_name(group, self.member)].act(group.now)


class Flow(NamedTuple):
    """Everybody has a turn, and all that is under way arrives on these links (a bit each)."""

    links: int

    def happen(self, group: Group, _: Serials) -> None:
        for name in group.members:
            group.turn(name)
        for link in _chosen(group, self.links):
            group.deliver(*link, len(group.links[link].frames))


class Arrive(NamedTuple):
    link: int
    packets: int

    def happen(self, group: Group, _: Serials) -> None:
        if links := list(group.links):
            group.deliver(*links[self.link % len(links)], self.packets)


class Consume(NamedTuple):
    member: int
    messages: int

    def happen(self, group: Group, _: Serials) -> None:
        group.consume(_name(group, self.member), self.messages)


class Wait(NamedTuple):
    nanoseconds: int

    def happen(self, group: Group, _: Serials) -> None:
        group.now += self.nanoseconds
        group.tick()


class Jam(NamedTuple):
    """A link becomes congested, or clears."""

    link: int

    def happen(self, group: Group, _: Serials) -> None:
        if perfect := list(group.links.values()):
            perfect[self.link % len(perfect)].congested ^= True


class TellHeld(NamedTuple):
    """Members hear which packets to all others hold (a bit for each link)."""

    links: int

    def happen(self, group: Group, _: Serials) -> None:
        for link in _chosen(group, self.links):
            group.tell_held(*link)


Action = Broadcast | Turn | Act | Flow | Arrive | Consume | Wait | Jam | TellHeld
SCOPES = [TO_ALL, TO_ALL, TO_ALL, Scope(safe=True), Scope(to=("a", "c")), Scope(client="k#1", request=1)]


class Case(NamedTuple):
    """One group with its options, and what happens in it."""

    order: str
    size: int
    options: OrderingOptions
    actions: list[Action]


def options(prioritised: bool, starvation: Starvation) -> st.SearchStrategy[OrderingOptions]:
    """Small windows and queues: that is where things wait, and where priorities act."""
    return st.builds(
        OrderingOptions,
        prioritised=st.just(prioritised),
        starvation=st.just(starvation),
        window=st.integers(1, 3) | st.none() | st.integers(1, 20),
        window_bytes=st.sampled_from([10**6, 60, 1]),
        queue_max=st.integers(1, 50),
        queue_bytes_max=st.sampled_from([10**6, 100]),
        submit_max=st.integers(1, 40),
        submit_bytes_max=st.sampled_from([10**6, 100]),
        burst=st.none() | st.integers(1, 5),
        bucket=st.sampled_from([1, 1, 2, 16]),
        part_ms=st.sampled_from([0.5, 10.0]),
        part_count=st.integers(1, 8),
    )


def schedules(bursts_max: int = 15, flowing: bool = False) -> st.SearchStrategy[list[Action]]:
    """What happens in a group.

    If it is `flowing`, packets arrive more often than one by one, and at the end what was ordered last has
    often reached some members only.
    """
    who = st.integers(0, len(NAMES) - 1)
    count_of_links = len(NAMES) * (len(NAMES) - 1)
    which = st.integers(0, count_of_links - 1)
    links = st.integers(0, 2**count_of_links - 1) | st.just(2**count_of_links - 1)
    few = st.integers(1, 8)
    sizes = st.lists(st.integers(0, 20), min_size=1, max_size=6).map(tuple)
    broadcast = st.builds(
        Broadcast, who, st.sampled_from([0, 1, 100, 101, 255]), sizes, st.sampled_from(SCOPES)
    )
    action = (
        broadcast
        | st.builds(Turn, who)
        | st.builds(Act, who)
        | st.builds(Flow, links)
        | st.builds(Arrive, which, few)
        | st.builds(Consume, who, few)
        | st.builds(Wait, st.sampled_from([1, MILLISECOND, 20 * MILLISECOND]))
        | st.builds(Jam, which)
        | st.builds(TellHeld, links)
    )
    # Lists of lists are longer on average than a list, and a backlog takes many broadcasts.
    burst: st.SearchStrategy[Sequence[Action]] = st.lists(action, max_size=15) | st.lists(
        broadcast, max_size=5
    )
    last: st.SearchStrategy[Sequence[Action]] = st.just([])
    if flowing:
        everywhere, somewhere = st.just(Flow(2**count_of_links - 1)), st.builds(Flow, links)
        take = st.builds(Consume, who, few)
        burst |= st.tuples(broadcast, broadcast, somewhere, take)
        burst |= st.tuples(somewhere, st.builds(TellHeld, links))
        last |= st.tuples(broadcast, everywhere, somewhere, take)
        last |= st.tuples(broadcast, everywhere, somewhere, st.builds(TellHeld, links))
        last |= st.tuples(broadcast, everywhere, st.builds(Act, who))
    parts = st.tuples(st.lists(burst, max_size=bursts_max), last)
    return parts.map(lambda parts: [action for burst in (*parts[0], parts[1]) for action in burst])


def cases(order: str, prioritised: bool, starvation: Starvation) -> st.SearchStrategy[Case]:
    """Small groups in which one view lasts for ever."""
    return st.builds(
        Case, st.just(order), st.integers(1, len(NAMES)), options(prioritised, starvation), schedules()
    )


def play(case: Case) -> Group:
    """Let the case happen, and then everything that can still happen."""
    group = Group(NAMES[: case.size], case.order, case.options)
    act_out(group, case.actions, count())
    come_to_rest(group, messages=6 * len(case.actions))
    return group


def check_waiting_in(case: Case) -> None:
    """The property: at any point of a schedule, whoever is waited for can end the wait."""
    group = Group(NAMES[: case.size], case.order, case.options)
    act_out(group, case.actions, count())
    check_waiting(group)


def act_out(group: Group, actions: list[Action], serials: Serials) -> None:
    """Let all this happen; each message has a serial number of its own."""
    for action in actions:
        action.happen(group, serials)


def come_to_rest(group: Group, messages: int) -> None:
    """Let everything happen that can."""
    if not group.settle(rounds_max=10 * messages + 20):
        raise Violation(LIVENESS, "the group does not come to rest")


def check(case: Case) -> None:
    """The property: whatever the schedule, every guarantee holds."""
    check_all(play(case))


def _name(group: Group, member: int) -> str:
    names = list(group.members)
    return names[member % len(names)]


def _chosen(group: Group, bits: int) -> list[tuple[str, str]]:
    return [link for index, link in enumerate(group.links) if bits >> index & 1]

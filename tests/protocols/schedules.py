"""Schedules: who does what and when in a group, drawn by Hypothesis so that a failing one shrinks."""

from itertools import count
from typing import NamedTuple

from hypothesis import strategies as st

from priocast.core.guarantees import LIVENESS
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Starvation
from protocols.guarantees import Violation, check_all
from protocols.harness import Group

MILLISECOND = 1_000_000
NAMES = ["a", "b", "c", "d"]


class Broadcast(NamedTuple):
    member: int
    priority: int
    sizes: tuple[int, ...]


class Turn(NamedTuple):
    member: int


class Arrive(NamedTuple):
    link: int
    packets: int


class Consume(NamedTuple):
    member: int
    messages: int


class Wait(NamedTuple):
    nanoseconds: int


class Jam(NamedTuple):
    """A link becomes congested, or clears."""

    link: int


Action = Broadcast | Turn | Arrive | Consume | Wait | Jam


class Case(NamedTuple):
    """One group with its options, and what happens in it."""

    order: str
    size: int
    options: OrderingOptions
    actions: list[Action]


def cases(order: str, prioritised: bool, starvation: Starvation) -> st.SearchStrategy[Case]:
    """Small groups with small windows and queues: that is where things wait, and where priorities act."""
    options = st.builds(
        OrderingOptions,
        prioritised=st.just(prioritised),
        starvation=st.just(starvation),
        window=st.integers(1, 3) | st.none() | st.integers(1, 20),
        window_bytes=st.sampled_from([10**6, 60, 1]),
        queue_max=st.integers(1, 50),
        queue_bytes_max=st.sampled_from([10**6, 100]),
        submit_max=st.integers(1, 40),
        submit_bytes_max=st.sampled_from([10**6, 100]),
    )
    who = st.integers(0, len(NAMES) - 1)
    which = st.integers(0, len(NAMES) * (len(NAMES) - 1) - 1)
    few = st.integers(1, 8)
    sizes = st.lists(st.integers(0, 20), min_size=1, max_size=6).map(tuple)
    broadcast = st.builds(Broadcast, who, st.sampled_from([0, 1, 100, 101, 255]), sizes)
    action = (
        broadcast
        | st.builds(Turn, who)
        | st.builds(Arrive, which, few)
        | st.builds(Consume, who, few)
        | st.builds(Wait, st.sampled_from([1, MILLISECOND, 20 * MILLISECOND]))
        | st.builds(Jam, which)
    )
    # Lists of lists are longer on average than a list, and a backlog takes many broadcasts.
    bursts = st.lists(st.lists(action, max_size=15) | st.lists(broadcast, max_size=5), max_size=15)
    actions = bursts.map(lambda bursts: [action for burst in bursts for action in burst])
    return st.builds(Case, st.just(order), st.integers(1, len(NAMES)), options, actions)


def play(case: Case) -> Group:
    """Let the case happen, and then everything that can still happen."""
    group = Group(NAMES[: case.size], case.order, case.options)
    serials = count()
    for action in case.actions:
        _act(group, action, serials)
    messages = 6 * len(case.actions)
    if not group.settle(rounds_max=10 * messages + 20):
        raise Violation(LIVENESS, "the group does not come to rest")
    return group


def check(case: Case) -> None:
    """The property: whatever the schedule, every guarantee holds."""
    check_all(play(case))


def _act(group: Group, action: Action, serials: "count[int]") -> None:
    names = list(group.members)
    match action:
        case Broadcast(member, priority, sizes):
            payloads = [b"%d%s" % (next(serials), b"." * size) for size in sizes]
            group.broadcast(names[member % len(names)], priority, payloads)
        case Turn(member):
            group.turn(names[member % len(names)])
        case Consume(member, messages):
            group.consume(names[member % len(names)], messages)
        case Wait(nanoseconds):
            group.now += nanoseconds
        case Arrive(link, packets):
            if links := list(group.links):
                group.deliver(*links[link % len(links)], packets)
        case Jam(link):
            if perfect := list(group.links.values()):
                perfect[link % len(perfect)].congested ^= True

"""Lives: a group from view to view, each of which ends at any point of its schedule.

A view ends as membership lets it end. Everybody who goes on is frozen; what any of them holds of the packets
to all, all of them get; then each knows the rest of the view, and which of its own messages have no place.
Those it sends again in the next view. Whoever does not go on is simply not asked any more.
"""

from itertools import count
from typing import NamedTuple

from hypothesis import strategies as st

from priocast.core.guarantees import AGREEMENT, INTEGRITY, LIVENESS, VIEW_SYNCHRONY
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Starvation
from priocast.membership.packets import FlushPlan, FlushReply
from protocols.guarantees import (
    check_fifo,
    check_integrity,
    check_priority,
    check_total_order,
    check_window,
)
from protocols.harness import Broadcast, Delivered, Group, Journal, Violation
from protocols.schedules import NAMES, Action, act_out, come_to_rest, options, schedules
from support.stacks import OneView

Twin = tuple[bool, Starvation]


class Chapter(NamedTuple):
    """One view: how it is ordered, what happens in it, and how it ends.

    Who goes on is drawn as bits, and in which order they are the next view by a rotation. The flush hands
    over `bytes_cut` at a time; `assembled` says whether all that the application said is in batches before.
    """

    order: str
    options: OrderingOptions
    actions: list[Action]
    survivors: int
    rotation: int
    bytes_cut: int
    assembled: bool


class Life(NamedTuple):
    size: int
    chapters: list[Chapter]


def lives(orders: list[str], twins: list[Twin]) -> st.SearchStrategy[Life]:
    """Lives whose views are each ordered in one of these ways."""
    chapter = st.builds(
        Chapter,
        st.sampled_from(orders),
        st.sampled_from(twins).flatmap(lambda twin: options(*twin)),
        schedules(bursts_max=8, flowing=True),
        st.integers(1, 2 ** len(NAMES) - 1) | st.sampled_from([0b1111, 0b1110, 0b0111]),
        st.integers(0, len(NAMES) - 1),
        st.sampled_from([1, 100, 10**6]),
        st.booleans(),
    )
    return st.builds(Life, st.sampled_from([1, 2, 3, 3, 4, 4]), st.lists(chapter, min_size=2, max_size=4))


class End(NamedTuple):
    """How a view ended for one member: what it still gets of it, and what it has to send again."""

    tail: list[OrderedBatch]
    unordered: list[Batch]
    position: int


def live(life: Life) -> None:
    """Let a life happen, and raise whatever it broke."""
    serials, said = count(), 6 * sum(len(chapter.actions) for chapter in life.chapters)
    names = NAMES[: life.size]
    journal: Journal = []
    group = Group(names, life.chapters[0].order, life.chapters[0].options)
    for chapter, following in zip(life.chapters, life.chapters[1:], strict=False):
        act_out(group, chapter.actions, serials)
        ends = end_view(group, chapter)
        journal += (*group.journal, *_rest_of(ends))
        check_end(group, ends, journal)
        group = _next_group(group, ends, chapter, following)
    act_out(group, life.chapters[-1].actions, serials)
    come_to_rest(group, messages=said)
    check_priority(group)
    check_window(group)
    among_equals = any(chapter.options.prioritised for chapter in life.chapters)
    check_life(group, journal + group.journal, among_equals)


def end_view(group: Group, chapter: Chapter) -> dict[str, End]:
    """Let those who go on agree on how the view ends; returns that for each of them, by name."""
    names = [name for rank, name in enumerate(NAMES) if chapter.survivors >> rank & 1]
    names = [name for name in names if name in group.members] or list(group.members)[:1]
    staying = {name: group.members[name] for name in names}
    for member in staying.values():
        if chapter.assembled:
            member.act(group.now)
        member.epoch.freeze(group.now)
    plan = _flush_plan(staying)
    for member in staying.values():
        _flush(member, staying, plan, chapter.bytes_cut, group.now)
    ends = {}
    for name, member in staying.items():
        tail = member.epoch.ending(plan)
        ends[name] = End(tail, member.unordered(), member.protocol.position_next)
    return ends


def _flush_plan(staying: dict[str, OneView]) -> FlushPlan:
    """What any of those who go on holds counts for all of them."""
    held = [member.epoch.stability.received for member in staying.values()]
    columns = list(zip(*held, strict=True))
    view = next(iter(staying.values())).epoch.view
    return FlushPlan(
        view.id,
        tuple(member.me for member in staying.values()),
        tuple(max(column) for column in columns),
        tuple(column.index(max(column)) for column in columns),
        (),
    )


def _flush(member: OneView, staying: dict[str, OneView], plan: FlushPlan, bytes_cut: int, now: int) -> None:
    """Hand a member the packets that it lacks, from whoever has them."""
    epoch = member.epoch
    while (missing := epoch.missing(plan)) is not None:
        holder, sender, first, last = missing
        rank = epoch.ranks[sender]
        bodies = staying[holder.name].epoch.stability.bodies(rank, first, last, bytes_cut)
        if not bodies:
            raise Violation(
                LIVENESS, f"{holder} has forgotten packet {first} of {sender}, which {member.me} lacks"
            )
        epoch.on_flush_reply(FlushReply(epoch.view.id, sender, first, tuple(bodies)), now)
        if epoch.missing(plan) == missing:
            raise Violation(LIVENESS, f"{member.me} was given packet {first} of {sender} and still lacks it")


def _rest_of(ends: dict[str, End]) -> list[Delivered]:
    """What each member delivers after the end of the view."""
    return [
        Delivered(name, ordered_batch.position + index, ordered_batch.message(index))
        for name, end in ends.items()
        for ordered_batch in end.tail
        for index in range(ordered_batch.taken, ordered_batch.batch.count)
    ]


def _next_group(before: Group, ends: dict[str, End], chapter: Chapter, following: Chapter) -> Group:
    """The next view; its members send again what has no place."""
    names = list(ends)
    turn = chapter.rotation % len(names)
    group = Group(
        names[turn:] + names[:turn],
        following.order,
        following.options,
        before.view.number + 1,
        next(iter(ends.values())).position,
        {name: before.members[name].assembler for name in names},
    )
    group.now = before.now
    for name, end in ends.items():
        group.members[name].resubmit(end.unordered, group.now)
    return group


def check_end(group: Group, ends: dict[str, End], journal: Journal) -> None:
    """Those who go on have delivered the same, all of it or the rest of it, and know what has no place."""
    sequences = {
        name: [
            (said.position, said.message)
            for said in journal
            if isinstance(said, Delivered) and said.member == name
        ]
        for name in ends
    }
    first, *others = ends
    for other in others:
        if sequences[other] != sequences[first]:
            raise Violation(VIEW_SYNCHRONY, f"the view ends otherwise at {other} than at {first}")
        if ends[other].position != ends[first].position:
            raise Violation(VIEW_SYNCHRONY, f"the next view begins elsewhere for {other} than for {first}")
    if group.members[first].protocol.PARTITIONABLE:
        _check_evidence(group, ends)
    for name, end in ends.items():
        placed = [message.payload for _, message in sequences[name] if message.sender.name == name]
        unordered = [payload for batch in end.unordered for payload in batch.payloads()]
        said = [each.payload for each in journal if isinstance(each, Broadcast) and each.member == name]
        if sorted(placed + unordered) != sorted(said):
            raise Violation(INTEGRITY, f"what {name} broadcast is not what has a place and what has none")


def _check_evidence(group: Group, ends: dict[str, End]) -> None:
    """What places a message are the same packets at all members, and they hold them."""
    dependencies: dict[int, tuple[int, ...]] = {}
    for name, end in ends.items():
        held = group.members[name].epoch.stability.received
        for ordered_batch in end.tail:
            if (
                dependencies.setdefault(ordered_batch.position, ordered_batch.dependencies)
                != ordered_batch.dependencies
            ):
                raise Violation(
                    VIEW_SYNCHRONY, f"{ordered_batch.batch} was placed by other packets at {name}"
                )
            if not any(ordered_batch.dependencies) or not all(
                map(int.__le__, ordered_batch.dependencies, held)
            ):
                raise Violation(
                    VIEW_SYNCHRONY, f"{ordered_batch.batch} was placed by a packet that {name} lacks"
                )


def check_life(group: Group, journal: Journal, among_equals: bool) -> None:
    """What the members of the last view have delivered in their whole life."""
    staying: Journal = [
        happened
        for happened in journal
        if isinstance(happened, Broadcast)
        or (isinstance(happened, Delivered) and happened.member in group.members)
    ]
    check_integrity(staying)
    check_total_order(staying)
    check_fifo(staying, among_equals)
    delivered: dict[str, set[bytes]] = {name: set() for name in group.members}
    for happened in staying:
        if isinstance(happened, Delivered):
            delivered[happened.member].add(happened.message.payload)
    if len(set(map(frozenset, delivered.values()))) > 1:
        raise Violation(AGREEMENT, "some members delivered what others did not")
    for happened in staying:
        if not isinstance(happened, Broadcast) or happened.member not in group.members:
            continue
        if happened.payload not in delivered[happened.member]:
            raise Violation(LIVENESS, f"{happened.payload!r} of {happened.member} is never delivered")
    for member in group.members.values():
        if not member.idle or member.backlog:
            raise Violation(LIVENESS, f"{member.me} still waits for something")

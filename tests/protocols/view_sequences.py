"""Sequences of views: a group from view to view, each of which ends at any point of its schedule.

A view ends as membership ends it. The survivors freeze; the flush gives each of them the packets to all that
any of them has received; then each knows the rest of the view, and which of its own messages are unordered.
Those it submits again in the next view. Members that do not survive are not asked any more.
"""

from itertools import count
from typing import NamedTuple

from hypothesis import strategies as st

from priocast.core.guarantees import AGREEMENT, INTEGRITY, LIVENESS, VIEW_SYNCHRONY
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Starvation
from priocast.membership.packets import FlushPlan, FlushReply
from priocast.protocols.adaptive.adaptive import Adaptive
from protocols.guarantees import check_fifo, check_integrity, check_priority, check_total_order, check_window
from protocols.harness import Broadcast, Delivered, Group, Journal, Violation, delivered
from protocols.schedules import NAMES, Action, act_out, come_to_rest, options, schedules
from protocols.stamps import check_stamps
from support.stacks import OneView

Twin = tuple[bool, Starvation]


class ViewPlan(NamedTuple):
    """One view: its protocol and options, its schedule, and its end.

    The survivors are bits, and their order in the next view is a rotation. The flush transfers `bytes_cut` at
    a time; `assembled` says whether all broadcasts are in batches before.
    """

    order: str
    options: OrderingOptions
    actions: list[Action]
    survivors: int
    rotation: int
    bytes_cut: int
    assembled: bool


class ViewSequence(NamedTuple):
    size: int
    views: list[ViewPlan]


def view_sequences(
    orders: list[str], twins: list[Twin], views_max: int = 4, bursts_max: int = 8
) -> st.SearchStrategy[ViewSequence]:
    """Sequences whose views each use one of these protocols and variants."""
    plan = st.builds(
        ViewPlan,
        st.sampled_from(orders),
        st.sampled_from(twins).flatmap(lambda twin: options(*twin, adapts=Adaptive.NAME in orders)),
        schedules(bursts_max, flowing=True),
        st.integers(1, 2 ** len(NAMES) - 1) | st.sampled_from([0b1111, 0b1110, 0b0111]),
        st.integers(0, len(NAMES) - 1),
        st.sampled_from([1, 100, 10**6]),
        st.booleans(),
    )
    return st.builds(
        ViewSequence, st.sampled_from([1, 2, 3, 3, 4, 4]), st.lists(plan, min_size=2, max_size=views_max)
    )


class End(NamedTuple):
    """How a view ended for one member: the rest of the order, and its unordered messages."""

    tail: list[OrderedBatch]
    unordered: list[Batch]
    position: int


def check_views(sequence: ViewSequence) -> None:
    """Execute a sequence; raises the guarantee that it violates."""
    serials, said = count(), 6 * sum(len(plan.actions) for plan in sequence.views)
    names = NAMES[: sequence.size]
    journal: Journal = []
    group = Group(names, sequence.views[0].order, sequence.views[0].options)
    for plan, following in zip(sequence.views, sequence.views[1:], strict=False):
        act_out(group, plan.actions, serials)
        ends = end_view(group, plan)
        journal += (*group.journal, *_rest_of(ends))
        check_end(group, ends, journal)
        group = _next_group(group, ends, plan, following)
    act_out(group, sequence.views[-1].actions, serials)
    come_to_rest(group, messages=said)
    check_priority(group)
    check_window(group)
    among_equals = any(plan.options.prioritised for plan in sequence.views)
    check_sequence(group, journal + group.journal, among_equals)
    check_stamps(journal + group.journal)


def end_view(group: Group, plan: ViewPlan) -> dict[str, End]:
    """End the view for its survivors; returns the end for each of them, by name."""
    names = [name for rank, name in enumerate(NAMES) if plan.survivors >> rank & 1]
    names = [name for name in names if name in group.members] or list(group.members)[:1]
    staying = {name: group.members[name] for name in names}
    for member in staying.values():
        if plan.assembled:
            member.act(group.now)
        member.epoch.freeze(group.now)
    flush_plan = _flush_plan(staying)
    for member in staying.values():
        _flush(member, staying, flush_plan, plan.bytes_cut, group.now)
    ends = {}
    for name, member in staying.items():
        tail = member.epoch.ending(flush_plan)
        ends[name] = End(tail, member.unordered(), member.protocol.position_next)
    return ends


def _flush_plan(staying: dict[str, OneView]) -> FlushPlan:
    """Packets that any survivor has received count for all of them."""
    received = [member.epoch.stability.received for member in staying.values()]
    columns = list(zip(*received, strict=True))
    view = next(iter(staying.values())).epoch.view
    return FlushPlan(
        view.id,
        tuple(member.me for member in staying.values()),
        tuple(max(column) for column in columns),
        tuple(column.index(max(column)) for column in columns),
        (),
    )


def _flush(
    member: OneView, staying: dict[str, OneView], flush_plan: FlushPlan, bytes_cut: int, now: int
) -> None:
    """Give a member the packets that it lacks, from a member that has them."""
    epoch = member.epoch
    while (missing := epoch.missing(flush_plan)) is not None:
        holder, sender, first, last = missing
        rank = epoch.ranks[sender]
        bodies = staying[holder.name].epoch.stability.bodies(rank, first, last, bytes_cut)
        if not bodies:
            raise Violation(
                LIVENESS, f"{holder} has forgotten packet {first} of {sender}, although {member.me} lacks it"
            )
        epoch.on_flush_reply(FlushReply(epoch.view.id, sender, first, tuple(bodies)), now)
        if epoch.missing(flush_plan) == missing:
            raise Violation(LIVENESS, f"{member.me} was given packet {first} of {sender} and still lacks it")


def _rest_of(ends: dict[str, End]) -> Journal:
    """What each member delivers after the end of the view."""
    return [
        happened
        for name, end in ends.items()
        for ordered_batch in end.tail
        for index in range(ordered_batch.taken, ordered_batch.batch.count)
        for happened in delivered(name, ordered_batch, index)
    ]


def _next_group(before: Group, ends: dict[str, End], plan: ViewPlan, following: ViewPlan) -> Group:
    """The next view; its members submit their unordered messages again."""
    names = list(ends)
    turn = plan.rotation % len(names)
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
    """The survivors have delivered the same messages, and know which of theirs are unordered."""
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
            raise Violation(VIEW_SYNCHRONY, f"the view ends differently at {other} than at {first}")
        if ends[other].position != ends[first].position:
            raise Violation(VIEW_SYNCHRONY, f"the next view starts elsewhere for {other} than for {first}")
    if group.members[first].protocol.PARTITIONABLE:
        _check_dependencies(group, ends)
    for name, end in ends.items():
        placed = [message.payload for _, message in sequences[name] if message.sender.name == name]
        unordered = [payload for batch in end.unordered for payload in batch.payloads()]
        said = [each.payload for each in journal if isinstance(each, Broadcast) and each.member == name]
        if sorted(placed + unordered) != sorted(said):
            raise Violation(INTEGRITY, f"the broadcasts of {name} are not its ordered and unordered messages")


def _check_dependencies(group: Group, ends: dict[str, End]) -> None:
    """The position of a message depends on the same packets at all members, and they have received them."""
    dependencies: dict[int, tuple[int, ...]] = {}
    for name, end in ends.items():
        held = group.members[name].epoch.stability.received
        for ordered_batch in end.tail:
            if (
                dependencies.setdefault(ordered_batch.position, ordered_batch.dependencies)
                != ordered_batch.dependencies
            ):
                raise Violation(VIEW_SYNCHRONY, f"{ordered_batch.batch} depends on other packets at {name}")
            if not any(ordered_batch.dependencies) or not all(
                map(int.__le__, ordered_batch.dependencies, held)
            ):
                raise Violation(
                    VIEW_SYNCHRONY, f"{ordered_batch.batch} depends on a packet that {name} lacks"
                )


def check_sequence(group: Group, journal: Journal, among_equals: bool) -> None:
    """What the members of the last view have delivered in the whole sequence."""
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
            raise Violation(LIVENESS, f"{member.me} is not idle")

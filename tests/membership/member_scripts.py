"""Scripts for whole members, in which a mutant of membership must be caught.

A script says step by step what arrives when, and returns the promises that are broken at its end. The real
code breaks none.
"""

from collections.abc import Callable

from priocast.core.guarantees import AGREEMENT, INTEGRITY, LIVENESS, TOTAL_ORDER, UNIFORMITY
from priocast.membership.packets import Ballot
from support.stacks import Neighbourhood, founded


def a_frame_arrives_after_the_promise() -> set[str]:
    """What the coordinator a ordered last reaches c after c has told b what it has received."""
    group = founded("abc")
    coordinator, voter = group.members["a"], group.members["c"].membership.voter
    group.broadcast("a", "late")
    coordinator.turn(group.now)
    frames = dict(coordinator.frames(group.now))["c"]
    group.kill("a")
    group.run_until(lambda: voter.promised is not None)
    group.receive(coordinator.me, "c", *frames)
    return broken_in_the_next_view(group, "bc")


def a_last_packet_reaches_one_member_only() -> set[str]:
    """The coordinator a crashes while it sends: c has its last packet, and b, who proposes, does not."""
    group = founded("abc")
    crash_while_sending(group, reaches="c")
    group.run_until(lambda: group.payloads("c"))
    return broken_in_the_next_view(group, "bc")


def those_who_have_a_packet_tell_each_other() -> set[str]:
    """A packet of the crashed coordinator is acknowledged by all but b, who needs it from one of them."""
    group = founded("abcd")
    crash_while_sending(group, reaches="cd")
    return broken_in_the_next_view(group, "bcd")


def who_has_a_packet_becomes_unreachable() -> set[str]:
    """The first of those who have a packet that b lacks cannot reach b any more: b must ask another one."""
    group = founded("abcde")
    crash_while_sending(group, reaches="cde")
    voter = group.members["b"].membership.voter
    group.run_until(lambda: voter._asked)
    group.cut("b", "c")
    return set() if happens(group, lambda: group.views()["b"] == "bcde", 90) else {LIVENESS}


def the_first_question_of_each_round_is_lost() -> set[str]:
    """The coordinator crashes, and whoever of the others proposes a view has to ask twice."""
    group = founded("abc")
    group.kill("a")
    proposers = [member.membership.proposer for member in group.members.values()]
    asked: set[Ballot] = set()
    for _ in range(500):
        group.run(1)
        asking = {proposer.round.ballot for proposer in proposers if proposer.round} - asked
        asked |= asking
        group.lost = {("b", "c"), ("c", "b")} if asking else set()
    assert asked
    return set() if group.views() == {"b": "bc", "c": "bc"} else {LIVENESS}


def a_safe_message_reaches_a_minority() -> set[str]:
    """Two of five have a safe message, and crash; the others never hear of it."""
    group = founded("abcde", delivery="safe")
    group.lost |= {("a", name) for name in "cde"}
    group.broadcast("a", "safe")
    group.run(60)
    delivered = group.payloads("a") + group.payloads("b")
    group.kill("a")
    group.kill("b")
    broken = broken_in_the_next_view(group, "cde")
    return broken | {UNIFORMITY} if {*delivered} - {*group.payloads("c")} else broken


def a_message_with_a_position_is_not_consumed_at_its_sender() -> set[str]:
    """The view changes while the application of b has not consumed its own message, which has a position."""
    group = founded("abc")
    group.applications["b"].takes_messages = False
    group.broadcast("b", "once")
    group.wait_payloads("a", "once")
    group.kill("c")
    group.wait_view("ab")
    group.applications["b"].takes_messages = True
    return broken_in_the_next_view(group, "ab")


def a_frame_arrives_in_the_next_view() -> set[str]:
    """A copy of the frame with which b submitted its message arrives when the view has changed."""
    group = founded("abc")
    sender = group.members["b"]
    group.broadcast("b", "once")
    sender.turn(group.now)
    frames = dict(sender.frames(group.now))["a"]
    group.receive(sender.me, "a", *frames)
    group.wait_payloads("ab", "once")
    group.kill("c")
    group.wait_view("ab")
    group.receive(sender.me, "a", *frames)
    return broken_in_the_next_view(group, "ab")


def only_one_knows_what_the_sender_knew() -> set[str]:
    """Member c knows the position of its message and tells a, but not b; then c is cut off."""
    group = founded("abc", policy="partitionable")
    group.lost.add(("c", "b"))
    group.broadcast("c", "known")
    group.wait_payloads("a", "known")
    assert group.payloads("b") == [], "b must not know yet that c knows the position"
    group.cut("c", "ab")
    return broken_in_the_next_view(group, "ab")


def a_new_member_is_cut_off_before_it_has_the_state() -> set[str]:
    """It is alone in a view, orders a message there, and cannot get the state of the others for it."""
    group = founded("ab", policy="partitionable", state=True)
    group.broadcast("a", "before")
    group.wait_payloads("ab", "before")
    alone = group.start("c")
    group.wait_view("abc", of="c")
    group.cut("ab", "c")
    group.broadcast("c", "alone")
    if not happens(group, lambda: alone.departed is not None, 2_000):
        return {LIVENESS}
    group.start("c", 2, alone.unordered_messages())
    group.lost.clear()
    applications = group.applications.values()
    expected = [b"before", b"alone"]
    is_delivered = happens(group, lambda: all(each.pages == expected for each in applications), 2_000)
    return set() if is_delivered else {LIVENESS}


def crash_while_sending(group: Neighbourhood, reaches: str) -> None:
    """The coordinator a crashes after its last packet has left for these members."""
    coordinator = group.members["a"]
    group.broadcast("a", "last")
    coordinator.turn(group.now)
    frames = dict(coordinator.frames(group.now))
    group.kill("a")
    for name in reaches:
        group.receive(coordinator.me, name, *frames[name])


def happens(group: Neighbourhood, condition: Callable[[], object], milliseconds_max: int) -> bool:
    """Let time pass until a condition holds; returns whether it does in this time."""
    try:
        group.run_until(condition, milliseconds_max)
    except AssertionError:
        return False
    return True


def broken_in_the_next_view(group: Neighbourhood, names: str) -> set[str]:
    """The promises that these members break until they are in one view and have delivered a message in it."""
    if not happens(group, lambda: all(group.views()[name] == names for name in names), 1_000):
        return {LIVENESS}
    group.broadcast(names[0], "next")
    if not happens(group, lambda: all("next" in group.payloads(name) for name in names), 1_000):
        return {LIVENESS}
    group.run(50)
    delivered = [
        [(delivery.position, delivery.message.id) for delivery in group.applications[name].deliveries]
        for name in names
    ]
    broken = set()
    together = {pair for each in delivered for pair in each}
    if len({position for position, _ in together}) < len(together):
        broken.add(TOTAL_ORDER)
    messages = [[message for _, message in each] for each in delivered]
    if any({*each} != {*messages[0]} for each in messages):
        broken.add(AGREEMENT)
    if any(len({*each}) < len(each) for each in messages):
        broken.add(INTEGRITY)
    return broken

"""Qualities of service between whole members: views, faults, suspects and the application's stream."""

import msgspec
import pytest

from priocast.core.errors import GroupClosed, InvalidInput, NoQuorum, Overloaded, PayloadTooLarge
from priocast.core.identity import ProcessId
from priocast.core.network_properties import NetworkProperties
from priocast.core.quality import (
    ATOMIC,
    CAUSAL,
    RELIABLE,
    TIGHT,
    UNRELIABLE,
    Quality,
    at_least,
    best_effort,
    best_effort_to,
    delta,
)
from priocast.core.role import Role
from priocast.links.frame import Frame
from priocast.services.frames import SERVICE_CHANNEL, service_frame
from priocast.services.options import ServiceOptions
from priocast.services.packets import (
    Closed,
    MessageDecision,
    Response,
    ServicePacket,
    ServiceStream,
    TransmissionId,
)
from support.notebook import Notebook
from support.stacks import CHECKED, Neighbourhood, founded

BOUNDED = ServiceOptions(
    network=NetworkProperties(error_detection=True, omission_degree=2, delay_ns=4_000_000), response_ms=10.0
)
QUALITIES = (UNRELIABLE, best_effort(2), best_effort_to("b"), at_least(2), RELIABLE, CAUSAL, ATOMIC, TIGHT)


def send(
    group: Neighbourhood,
    sender: str,
    *units: str,
    quality: Quality = RELIABLE,
    to: list[str] | None = None,
    priority: int = 7,
) -> TransmissionId:
    payloads = [each.encode() for each in units]
    return group.members[sender].send(payloads, quality, to, priority, group.now)


def taken(group: Neighbourhood, name: str) -> list[str]:
    """The units that a member has delivered."""
    return [unit.payload.decode() for unit in group.applications[name].units]


@pytest.mark.parametrize("quality", QUALITIES, ids=str)
def test_a_message_reaches_all_members_and_its_sender_gets_a_receipt(quality: Quality) -> None:
    group = founded("abc")
    message = send(group, "a", "one", "two", quality=quality)
    group.run(50)
    assert [taken(group, name) for name in "abc"] == [["one", "two"]] * 3
    (receipt,) = group.applications["a"].receipts
    assert receipt.message == message and receipt.accepted


def test_only_the_named_members_receive_a_message() -> None:
    group = founded("abc")
    send(group, "a", "x", to=["b"])
    group.run(50)
    assert [taken(group, name) for name in "abc"] == [[], ["x"], []]
    assert group.applications["a"].receipts[0].answered == ("b",)


def test_on_a_synchronised_network_a_message_is_delivered_by_the_clock() -> None:
    group = founded("abc", services=BOUNDED)
    group.run(500)
    sent_at = group.now
    send(group, "b", "x", quality=delta(100))
    group.run(109)
    assert [taken(group, name) for name in "abc"] == [[], [], []]
    group.run(3)
    assert [taken(group, name) for name in "abc"] == [["x"]] * 3
    assert group.now - sent_at <= 112_000_000


def test_a_group_that_uses_no_quality_has_no_state_for_them() -> None:
    group = founded("abc")
    group.broadcast("a", "x")
    group.wait_payloads("abc", "x")
    assert not any(member.services.in_use for member in group.members.values())


def test_a_new_member_takes_part_and_one_that_left_is_no_longer_waited_for() -> None:
    group = founded("abc")
    send(group, "a", "1")
    group.run(50)
    group.start("d")
    group.wait_view("abcd")
    send(group, "a", "2", quality=at_least(3))
    group.run(50)
    assert taken(group, "d") == ["2"]
    send(group, "d", "3", quality=ATOMIC)
    group.members["c"].leave(group.now)
    group.wait_view("abd", of="abd")
    group.run(100)
    assert taken(group, "a") == taken(group, "b") == ["1", "2", "3"]


@pytest.mark.parametrize("quality", [at_least(2), RELIABLE, CAUSAL, ATOMIC, TIGHT], ids=str)
def test_what_a_failed_sender_has_sent_to_some_reaches_all_or_none(quality: Quality) -> None:
    group = founded("abcd")
    group.lost = {("a", "c"), ("a", "d")}
    send(group, "a", "x", quality=quality)
    group.run(2)
    group.kill("a")
    group.lost = set()
    group.wait_view("bcd")
    group.run(2_000)
    is_agreed = quality in (ATOMIC, TIGHT)
    assert [taken(group, name) for name in "bcd"] == [[] if is_agreed else ["x"]] * 3


def test_a_new_incarnation_starts_anew() -> None:
    group = founded("abc")
    send(group, "a", "1", quality=TIGHT)
    group.run(50)
    group.kill("a")
    group.wait_view("bc")
    group.start("a", 2)
    group.wait_view("bca")
    again = send(group, "a", "2", quality=TIGHT)
    group.run(100)
    assert again == TransmissionId(ProcessId("a", 2), ServiceStream.TIGHT, 1)
    assert taken(group, "b") == ["1", "2"] and taken(group, "a") == ["2"]


# The stream of the application


def test_the_more_urgent_of_the_two_heads_goes_first_and_equal_ones_take_turns() -> None:
    group = founded("ab")
    application = group.applications["b"]
    application.takes_messages = False
    group.broadcast("a", "o1", "o2", priority=7)
    group.run(20)
    for text, priority in (("low", 6), ("even", 7), ("even too", 7), ("high", 8)):
        send(group, "a", text, priority=priority, quality=TIGHT, to=["b"])
        group.run(10)
    member = group.members["b"]
    order: list[str] = taken(group, "b")
    while (head := member.head(group.now)) is not None:
        if member.service_head(head) is not None:
            order.append(member.take_service(group.now).payload.decode())
        else:
            order.append("order")
            member.consume(1, group.now)
    assert order == ["even", "high", "order", "even too", "order"]
    assert member.service_head() is not None, "the least urgent one is last"


def test_a_new_member_takes_nothing_before_it_has_the_state_of_the_group() -> None:
    group = founded("ab", state=True)
    member = group.start("c")
    group.cut("ab", "c")
    member.stream.awaits_state = True
    group.lost = set()
    group.wait_view("abc")
    member.stream.awaits_state = True
    send(group, "a", "x")
    group.members["c"].turn(group.now)
    group._deliver()
    assert member.service_head() is None


# What is rejected


@pytest.mark.parametrize(
    ("quality", "to", "message"),
    [
        (at_least(4), None, "at-least:4 asks for more than the 3 recipients"),
        (RELIABLE, ["z"], "'z' is not a member; the members are a, b, c"),
        (RELIABLE, [], "`to` is empty"),
        (RELIABLE, "a", "pass a list of names"),
        (best_effort_to("c"), ["a", "b"], "asks for 'c', which is not a recipient"),
        (Quality(at_least(1).kind, count=1, names=("b",)), None, "choose one"),
        (delta(20), None, r"bounded omission degree \(Pn3\)"),
    ],
)
def test_a_request_that_cannot_be_met_is_rejected_and_nothing_is_sent(
    quality: Quality, to: list[str] | None, message: str
) -> None:
    group = founded("abc")
    with pytest.raises(InvalidInput, match=message):
        send(group, "a", "x", quality=quality, to=to)
    assert not group.members["a"].services.has_frames and not group.members["a"].services.in_flight


def test_a_network_without_error_detection_gives_no_quality() -> None:
    group = founded("ab", services=ServiceOptions())
    with pytest.raises(InvalidInput, match=r"error detection \(Pn2\)"):
        send(group, "a", "x", quality=UNRELIABLE)


def test_members_with_other_options_of_the_qualities_do_not_form_a_group() -> None:
    group = Neighbourhood("a", founders=2)
    group.services = BOUNDED
    group.start("b")
    group.run_until(group.members["a"].membership.mismatches.texts)
    [text] = group.members["a"].membership.mismatches.texts()
    assert text == (
        "b has other group options: delay_ns is None here and 4000000 at b, omission_degree is None here and "
        "2 at b, response_ms is 50.0 here and 10.0 at b"
    )


def test_units_must_fit_into_one_transmission() -> None:
    member = founded("ab").members["a"]
    with pytest.raises(InvalidInput, match="0 units: send 1 to 4096"):
        member.send([], RELIABLE, None, 0, 0)
    with pytest.raises(PayloadTooLarge, match="1,048,577 bytes together"):
        member.send([b"x" * (1 << 20), b"x"], RELIABLE, None, 0, 0)


def test_a_deadline_in_the_past_is_rejected() -> None:
    group = founded("ab")
    with pytest.raises(InvalidInput, match="the deadline was 1 ms ago: nothing was sent"):
        group.members["a"].send([b"x"], RELIABLE, None, 0, group.now, group.now - 1_000_000)


def test_without_a_view_nothing_can_be_sent() -> None:
    group = Neighbourhood("ab")
    with pytest.raises(GroupClosed, match="a is not in the group now"):
        send(group, "a", "x")


def test_without_a_quorum_only_best_effort_is_sent() -> None:
    group = founded("abc")
    group.cut("a", "bc")
    group.run_until(lambda: group.members["a"].membership.trigger.suspended)
    for quality in (at_least(1), RELIABLE, CAUSAL, ATOMIC, TIGHT):
        with pytest.raises(NoQuorum, match="no quorum of the group can be reached"):
            send(group, "a", "x", quality=quality)
    send(group, "a", "y", quality=UNRELIABLE)
    group.run(5)
    assert taken(group, "a") == ["y"]


def test_too_many_messages_in_flight_are_rejected() -> None:
    group = founded("abc", services=msgspec.structs.replace(CHECKED, in_flight_max=1))
    group.cut("a", "bc")
    send(group, "a", "1")
    with pytest.raises(Overloaded, match="wait for a receipt"):
        send(group, "a", "2")


# Other processes


def test_frames_of_processes_outside_the_view_have_no_part() -> None:
    group = founded("ab")
    frame = service_frame(Closed(TransmissionId(ProcessId("b", 1), ServiceStream.ATOMIC, 0)))
    group.receive(ProcessId("z", 1), "a", frame)
    assert not group.members["a"].services.in_use and not group.members["a"].rejections


@pytest.mark.parametrize("role", [Role.CLIENT, Role.OBSERVER])
def test_frames_of_qualities_are_for_members_alone(role: Role) -> None:
    member = founded("ab").members["a"]
    frame = service_frame(Closed(TransmissionId(ProcessId("b", 1), ServiceStream.ATOMIC, 1)))
    member.receive(ProcessId("b", 1), [frame], 0, role)
    (reason,) = member.rejections
    assert reason.startswith("not for") and not member.services.in_use


BAD_PACKETS: list[ServicePacket] = [
    Closed(TransmissionId(ProcessId("b", 1), ServiceStream.ATOMIC, 0)),
    Response(TransmissionId(ProcessId("a", 1), ServiceStream.DISSEMINATED, 9), 1),
    MessageDecision(TransmissionId(ProcessId("c", 1), ServiceStream.TIGHT, 1), 0, accepted=True, point=(1,)),
]


@pytest.mark.parametrize(
    "frame",
    [*map(service_frame, BAD_PACKETS), Frame(SERVICE_CHANNEL, 0, 0, 0, b"\x93\xa4data\xff")],
    ids=lambda frame: frame.body[:12].hex(),
)
def test_a_member_that_sends_what_no_member_sends_is_evicted(frame: Frame) -> None:
    group = founded("abc")
    group.receive(ProcessId("b", 1), "a", frame)
    group.wait_view("ac", of="ac")
    assert "b was evicted (fault)" in group.applications["a"].reasons[-1]
    assert not group.members["a"].faults


def test_in_a_partitionable_group_it_is_only_rejected() -> None:
    group = founded("abc", policy="partitionable")
    group.receive(ProcessId("b", 1), "a", service_frame(BAD_PACKETS[0]))
    group.run(500)
    assert group.views()["a"] == "abc"
    assert group.members["a"].rejections == {"message number 0": 1}


# What is observed and counted


def test_an_observer_sees_messages_deliveries_and_receipts() -> None:
    group, notebook = Neighbourhood("", founders=2), Notebook()
    group.start("a", observer=notebook)
    group.start("b")
    group.wait_view("ab")
    notebook.cut()
    send(group, "a", "x", "y", quality=ATOMIC)
    group.run(20)
    assert notebook.cut() == [
        "sent a#1/atomic/1 with atomic to a#1, b#1",
        "finished a#1/atomic/1: accepted",
        "delivered unit 0 of a#1/atomic/1 with atomic",
        "delivered unit 1 of a#1/atomic/1 with atomic",
    ]


def test_every_member_counts_by_quality() -> None:
    group = founded("ab")
    group.lost = {("a", "b")}
    send(group, "a", "x", "y")
    group.run(60)
    group.lost = set()
    group.run(200)
    (kind, counts), *others = group.members["a"].services.counts.items()
    assert not others and kind is RELIABLE.kind
    assert (counts.sent, counts.accepted, counts.rejected, counts.delivered) == (1, 1, 0, 2)
    assert counts.retransmissions >= 1
    assert group.members["b"].services.counts[kind].delivered == 2


def test_leaving_waits_for_what_is_in_flight() -> None:
    group = founded("ab")
    assert group.members["a"].may_leave(group.now)
    send(group, "a", "x")
    assert not group.members["a"].may_leave(group.now)
    group.run(50)
    assert group.members["a"].may_leave(group.now) and group.members["a"].idle

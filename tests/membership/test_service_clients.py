"""Clients that have a member send with a quality of service."""

import msgspec
import pytest

from priocast.core.identity import ProcessId
from priocast.core.quality import ATOMIC, RELIABLE, Quality, at_least
from priocast.core.role import Role
from priocast.membership.datagrams import frame_of, read
from priocast.membership.packets import ClientReceipt, ClientSend
from support.stacks import CHECKED, Neighbourhood, founded

CLIENT = ProcessId("shop", 1)


def request(number: int = 1, quality: Quality = RELIABLE, to: tuple[str, ...] = ()) -> ClientSend:
    return ClientSend(number, 7, quality, to, b"x")


def ask(group: Neighbourhood, wanted: ClientSend, client: ProcessId = CLIENT) -> None:
    group.members["a"].receive(client, [frame_of(wanted)], group.now, Role.CLIENT)


def receipts(group: Neighbourhood) -> list[ClientReceipt]:
    """The receipts that members have sent to clients."""
    read_ = [read(sender, frame) for _, sender, frame in group.letters]
    return [control for control in read_ if isinstance(control, ClientReceipt)]


def test_a_member_sends_a_clients_message_and_returns_the_receipt() -> None:
    group = founded("abc")
    ask(group, request(quality=ATOMIC, to=("b", "c")))
    group.run(50)
    (receipt,) = receipts(group)
    assert (receipt.number, receipt.reason, receipt.accepted, receipt.rounds) == (1, "", True, 1)
    assert sorted(receipt.answered) == ["b", "c"]
    assert [len(group.applications[name].units) for name in "abc"] == [0, 1, 1]
    assert group.applications["a"].receipts == [], "it is no receipt of the member's own application"


def test_a_repeated_request_is_sent_once_and_answered_again() -> None:
    group = founded("ab")
    for _ in range(3):
        ask(group, request())
        group.run(1)
    group.run(50)
    ask(group, request())
    group.run(10)
    assert len(group.applications["b"].units) == 1
    assert len(receipts(group)) == 2 and receipts(group)[0] == receipts(group)[1]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (request(quality=at_least(9)), "at-least:9 asks for more than the 2 recipients"),
        (request(to=("z",)), "'z' is not a member; the members are a, b"),
        (request(quality=Quality(RELIABLE.kind, within_ms=5.0)), "has parameters of another quality"),
    ],
    ids=["too many", "a stranger", "a quality that cannot be"],
)
def test_a_request_that_cannot_be_met_is_answered_with_the_reason(wanted: ClientSend, reason: str) -> None:
    group = founded("ab")
    ask(group, wanted)
    group.run(10)
    (receipt,) = receipts(group)
    assert receipt.message is None and reason in receipt.reason
    assert not group.members["a"].services.in_flight


def test_clients_have_a_share_of_the_room() -> None:
    group = founded("ab", services=msgspec.structs.replace(CHECKED, in_flight_max=16))
    group.cut("a", "b")
    for number in range(1, 5):
        ask(group, request(number))
        ask(group, request(number), ProcessId("other", 1))
    assert group.members["a"].services.in_flight == 4, "two of each client"
    for number in range(1, 9):
        ask(group, request(), ProcessId(f"client{number}", 1))
    assert group.members["a"].services.in_flight == 8, "half of the room"
    assert group.members["a"].rejections == {"client quota": 8}


def test_without_room_a_request_is_not_answered_and_the_client_asks_again() -> None:
    group = founded("ab", services=msgspec.structs.replace(CHECKED, in_flight_max=2))
    group.cut("a", "b")
    member = group.members["a"]
    for _ in range(2):
        member.send([b"y"], RELIABLE, None, 7, group.now)
    ask(group, request())
    group.run(5)
    assert receipts(group) == []
    group.lost = set()
    group.run(200)
    ask(group, request())
    group.run(50)
    assert [receipt.accepted for receipt in receipts(group)] == [True]


def test_a_receipt_is_not_for_a_member() -> None:
    group = founded("ab")
    group.receive(group.members["b"].me, "a", frame_of(ClientReceipt(1, "")))
    assert group.members["a"].rejections == {"reply to a member": 1}

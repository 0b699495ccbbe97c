"""Probation: a member that was evicted as slow cannot make the group wait for its application again."""

import pytest

from priocast.core.message import OrderedBatch
from priocast.core.view_reason import Eviction, ViewReason
from priocast.membership.departure import Departed
from priocast.protocols import PROTOCOLS
from support.stacks import Neighbourhood, founded

SLOW_MS = 2_000
WINDOWED = [name for name, protocol in PROTOCOLS.items() if protocol.PRIORITIES_ACT != "consuming"]


def with_c_back(order: str = "sequencer-ub", **options: object) -> Neighbourhood:
    """A group of a and b, into which c has come back on probation; its application takes no messages."""
    group = founded("ab", order=order, window=4, acknowledge_ms=1, **options)
    group.start("c", incarnation=2, on_probation=True)
    group.wait_view("abc")
    group.applications["c"].takes_messages = False
    return group


def broadcast_steadily(group: Neighbourhood, milliseconds: int, first: int = 0) -> int:
    """Broadcast a message every 10 ms; return how long the others went without a delivery at most."""
    delivered, since, longest = len(group.payloads("a")), 0, 0
    for passed in range(milliseconds):
        if passed % 10 == 0:
            group.broadcast("ab"[passed // 10 % 2], str(first + passed))
        group.run(1)
        since = 0 if len(group.payloads("a")) > delivered else since + 1
        longest, delivered = max(longest, since), len(group.payloads("a"))
    return longest


@pytest.mark.parametrize("order", WINDOWED)
def test_the_others_do_not_wait_for_an_application_on_probation(order: str) -> None:
    group = with_c_back(order)
    longest = broadcast_steadily(group, SLOW_MS // 2)
    assert longest < 100, f"nothing was delivered for {longest} ms"
    assert len(group.payloads("a")) > 90 and not group.payloads("c")
    group.applications["c"].takes_messages = True
    group.run(50)
    assert group.payloads("c") == group.payloads("a")[-len(group.payloads("c")) :]
    assert len(group.payloads("c")) > 90


def test_a_full_member_makes_the_others_wait() -> None:
    group = founded("abc", window=4)
    group.applications["c"].takes_messages = False
    assert broadcast_steadily(group, SLOW_MS // 2) > 500


def test_a_member_on_probation_whose_application_is_stuck_withdraws() -> None:
    group = with_c_back()
    member = group.members["c"]
    longest = broadcast_steadily(group, 2 * SLOW_MS)
    assert longest < 100
    assert group.views()["a"] == "ab"
    assert group.applications["a"].reasons[-1] == "c left"
    detail = "on probation, its application did not consume"
    assert member.departed == Departed(False, ViewReason(evicted=(Eviction("c", "slow", detail),)))


def test_a_member_on_probation_withdraws_when_it_cannot_keep_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.membership.stream._KEPT_BYTES_MAX", 16 * 1024)
    group = with_c_back()
    member = group.members["c"]
    assert broadcast_steadily(group, SLOW_MS // 2) < 100
    assert member.departed is not None and not member.departed.voluntary


def test_the_probation_ends_when_the_application_has_kept_up() -> None:
    group = with_c_back()
    group.applications["c"].takes_messages = True
    member = group.members["c"]
    group.run(4 * SLOW_MS)
    assert member.progress.probation is not None, "it has shown nothing without messages"
    broadcast_steadily(group, 4 * SLOW_MS, first=100_000)
    assert member.progress.probation is None
    assert group.payloads("c") == group.payloads("a")


def test_an_application_that_falls_behind_is_on_probation_for_longer() -> None:
    group = with_c_back()
    application, member = group.applications["c"], group.members["c"]
    for phase in range(6):
        application.takes_messages = phase % 2 == 0
        broadcast_steadily(group, SLOW_MS // (1 if phase % 2 == 0 else 4), first=phase * 100_000)
    assert member.progress.probation is not None and member.departed is None


def test_own_messages_that_a_withdrawing_member_kept_are_delivered_once() -> None:
    group = with_c_back()
    group.broadcast("c", "of c")
    group.run_until(lambda: "of c" in group.payloads("a"))
    group.broadcast("b", "later")
    member = group.members["c"]
    group.run_until(lambda: member.departed)
    left = member.unordered_messages()
    assert [payload for batch in left.batches for payload in batch.payloads()] == [b"of c"]
    group.start("c", incarnation=3, unordered_messages=left, on_probation=True)
    group.broadcast("c", "again")
    group.run_until(lambda: "again" in group.payloads("a"))
    assert group.payloads("a") == ["of c", "later", "again"]


def test_a_safe_message_is_kept_when_it_has_become_stable() -> None:
    group = with_c_back(delivery="safe")
    assert broadcast_steadily(group, SLOW_MS // 2) < 100
    assert len(group.payloads("a")) > 90


def test_an_application_takes_the_rest_of_a_batch_that_is_kept_meanwhile() -> None:
    group = with_c_back(delivery="safe")
    member, taken = group.members["c"], []
    group.broadcast("a", "1", "2", "3", "4")
    group.run_until(lambda: isinstance(member.head(group.now), OrderedBatch))
    for number in range(4):
        head = member.stream.offered
        assert isinstance(head, OrderedBatch)
        taken.append(head.message(number).payload)
        member.consume(1, group.now)
        member.head(group.now)
        group.run(60)
    assert taken == [b"1", b"2", b"3", b"4"] and member.departed is None

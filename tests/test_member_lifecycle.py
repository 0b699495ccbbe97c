"""The lifecycle of members: founding, joining, leaving, failing, rejoining.

The tests control time and network (`support/stacks.py`).
"""

from typing import Any

import msgspec
import pytest

from priocast.core.errors import InvalidOption, UnknownProtocol
from priocast.core.events import ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import OrderedBatch
from priocast.core.view_reason import ViewReason
from priocast.links.frame import LinkOptions
from priocast.membership.datagrams import frame_of
from priocast.membership.departure import Departed
from priocast.membership.packets import FLUSH_PACKETS_MAX, Heartbeat, Ordering
from support.stacks import Neighbourhood, epoch_of, founded

PLAIN = Ordering("sequencer-ub", prioritised=False, starvation="none")


class TestFounding:
    @pytest.mark.parametrize("names", ["a", "ab", "abc", "cab"])
    def test_the_founders_are_the_first_view_in_the_order_of_their_names(self, names: str) -> None:
        group = Neighbourhood(names)
        group.wait_view("".join(sorted(names)))
        group.run(5)
        for name in names:
            (first,) = group.applications[name].events
            assert isinstance(first, ViewChange)
            assert (first.view.number, first.position, first.reason) == (1, 0, ViewReason(founded=True))
            assert first.order == "sequencer-ub"

    @pytest.mark.parametrize("policy", ["primary", "partitionable"])
    def test_a_group_is_founded_only_when_all_founders_are_there(self, policy: str) -> None:
        group = Neighbourhood("ab", founders=3, policy=policy)
        group.run(1_000)
        assert group.views() == {"a": "", "b": ""}
        group.start("c")
        group.wait_view("abc")

    def test_messages_from_before_the_first_view_are_delivered_in_it(self) -> None:
        group = Neighbourhood("ab", founders=3)
        group.broadcast("b", "early")
        group.run(100)
        assert group.members["b"].backlog == 1
        group.start("c")
        group.wait_payloads("abc", "early")

    def test_one_founder_too_many_joins_the_first_view(self) -> None:
        group = Neighbourhood("abcd", founders=3)
        group.run_until(lambda: all(len(view) == 4 for view in group.views().values()))
        assert len(group.applications["a"].events) == 2

    def test_a_process_that_expects_other_founders_objects(self) -> None:
        group = Neighbourhood("a", founders=2)
        group.start("b", founders=3)
        group.run(500)
        assert group.views() == {"a": "", "b": ""}
        assert group.members["a"].membership.proposer.objection == "b expects 3 founders, not 2"

    def test_a_process_with_other_options_is_told_those_of_the_group(self) -> None:
        group = founded("ab")
        stranger = group.start("c", window=5)
        group.run(200)
        assert group.views() == {"a": "ab", "b": "ab", "c": ""}
        assert sorted(stranger.membership.mismatches.texts()) == [
            f"{name} has other group options: window is 5 here and None at {name}" for name in "ab"
        ]
        expected = "c has other group options: window is None here and 5 at c"
        assert group.members["a"].membership.mismatches.texts() == [expected]

    @pytest.mark.parametrize("changed", [{"rejoin": False}, {"founders": 1}])
    def test_some_options_may_differ(self, changed: dict[str, Any]) -> None:
        group = founded("ab")
        joiner = group.start("c", **changed)
        group.wait_view("abc")
        assert group.applications["a"].reasons[-1] == "c joined"
        assert joiner.membership.mismatches.texts() == []


class TestViewChanges:
    def test_a_joining_member_starts_at_the_groups_position(self) -> None:
        group = founded("ab")
        group.broadcast("a", "1", "2")
        group.wait_payloads("ab", "1", "2")
        group.start("c")
        group.wait_view("abc")
        group.broadcast("c", "3")
        group.wait_payloads("ab", "1", "2", "3")
        assert group.payloads("c") == ["3"]
        (change,) = group.applications["c"].events
        assert (change.position, group.applications["a"].reasons[-1]) == (2, "c joined")

    @pytest.mark.parametrize("leaver", "abc")
    def test_messages_of_a_leaving_member_are_delivered(self, leaver: str) -> None:
        group = founded("abc")
        group.broadcast(leaver, "goodbye")
        group.run(1)
        group.members[leaver].leave(group.now)
        staying = "abc".replace(leaver, "")
        group.wait_view(staying)
        member = group.members[leaver]
        group.run_until(lambda: member.departed)
        assert member.departed == Departed(True, ViewReason(left=(leaver,)))
        group.wait_payloads(staying, "goodbye")
        assert group.applications[staying[0]].reasons == ["the group was founded", f"{leaver} left"]

    def test_all_but_one_may_leave_at_once_and_the_last_one_alone(self) -> None:
        group = founded("abc")
        for name in "ab":
            group.members[name].leave(group.now)
        group.wait_view("c")
        group.members["c"].leave(group.now)
        group.run(5)
        assert all(member.departed and member.departed.voluntary for member in group.members.values())
        assert "b left" in str(group.members["b"].departed)
        assert str(group.members["c"].departed) == "c left"

    @pytest.mark.parametrize("failing", "abc")
    def test_after_a_failure_nothing_of_the_others_is_lost(self, failing: str) -> None:
        group = founded("abc")
        staying = "abc".replace(failing, "")
        group.broadcast(staying[0], "1")
        group.broadcast(staying[1], "2")
        group.run(1)
        group.kill(failing)
        group.broadcast(staying[1], "3")
        group.wait_view(staying)
        group.run_until(lambda: len(group.payloads(staying[0])) == 3)
        group.run(10)
        assert group.payloads(staying[0]) == group.payloads(staying[1])
        assert sorted(group.payloads(staying[0])) == ["1", "2", "3"]
        assert group.applications[staying[0]].reasons[-1] == f"{failing} failed"

    def test_the_flush_brings_every_survivor_the_same_messages(self) -> None:
        group = founded("abc")
        group.lost.add(("a", "c"))
        group.broadcast("b", "1", "2")
        group.broadcast("a", "3")
        group.run_until(lambda: len(group.payloads("b")) == 3)
        assert group.payloads("c") == []
        group.kill("a")
        group.wait_view("bc")
        group.run(5)
        assert group.payloads("c") == group.payloads("b")
        change = group.applications["c"].events[-1]
        assert change.position == 3
        assert change == group.applications["b"].events[-1]

    def test_the_flush_brings_more_packets_than_one_reply_may_carry(self) -> None:
        """The answers of b are lost on their way to c, while a and b go on with thousands of packets."""
        answering = {"order": "reorder", "distributed": True, "prioritised": False}
        group = founded("abc", **answering, failure_ms=5_000.0, slow_ms=60_000.0)
        group.lost.add(("b", "c"))
        said = [str(number) for number in range(FLUSH_PACKETS_MAX + 100)]
        for payload in said:
            group.broadcast("a", payload)
            group.run(1)
        lacking = epoch_of(group.members["c"]).stability.received[1]
        assert epoch_of(group.members["a"]).stability.received[1] - lacking > FLUSH_PACKETS_MAX
        group.kill("b")
        group.run_until(lambda: group.views() == {"a": "ac", "c": "ac"}, 10_000)
        group.wait_payloads("ac", *said)
        assert not group.members["c"].rejections

    def test_messages_keep_their_order_through_view_changes(self) -> None:
        group = founded("abc")
        said = [str(number) for number in range(400)]
        for number, payload in enumerate(said):
            group.broadcast("b", payload)
            group.run(1)
            if number == 50:
                group.kill("a")
            if number == 250:
                group.start("d")
            if number == 300:
                group.members["c"].leave(group.now)
        group.run_until(lambda: len(group.payloads("b")) == 400)
        assert group.payloads("b") == said
        assert group.applications["b"].reasons[1:] == ["a failed", "d joined", "c left"]

    def test_without_a_majority_nothing_is_ordered(self) -> None:
        group = founded("abc")
        group.kill("b")
        group.kill("c")
        group.run(300)
        member = group.members["a"]
        assert member.membership.trigger.suspended
        group.broadcast("a", "to nobody")
        group.run(300)
        assert group.payloads("a") == []
        assert member.view is not None
        assert member.backlog == 1

    def test_a_member_whose_application_does_not_consume_is_evicted(self) -> None:
        group = founded("abc", window=4, slow_ms=200.0)
        group.applications["c"].takes_messages = False
        group.broadcast("a", *map(str, range(20)))
        group.wait_view("ab")
        assert group.applications["a"].reasons[-1] == "c was evicted (slow)"
        group.wait_payloads("ab", *map(str, range(20)))
        group.run_until(lambda: group.members["c"].departed)
        assert group.members["c"].departed is not None and not group.members["c"].departed.voluntary

    def test_a_member_that_does_not_acknowledge_is_evicted(self) -> None:
        links = LinkOptions(window_bytes=1, window_bytes_first=1, backlog_bytes_max=100_000)
        group = founded("abc", link_options=links)
        group.members["b"].broadcast_many([bytes(70_000)] * 3, 7)
        group.wait_view("bc")
        assert group.applications["c"].reasons[-1] == "a was evicted (overflow)"
        group.run_until(lambda: len(group.payloads("c")) == 3)

    def test_the_order_changes_for_all_at_one_position(self) -> None:
        group = founded("abc")
        group.broadcast("b", "1")
        group.wait_payloads("abc", "1")
        group.members["c"].change_order(PLAIN, group.now)
        group.run_until(lambda: all(len(each.events) == 2 for each in group.applications.values()))
        assert {each.reasons[-1] for each in group.applications.values()} == {
            "the order changed to sequencer-ub"
        }
        for priority in (1, 200, 100):
            group.broadcast("b", f"plain {priority}", priority=priority)
        group.wait_payloads("abc", "1", "plain 1", "plain 200", "plain 100")
        group.start("d")
        group.wait_view("abcd")
        assert group.members["d"].membership.ordering == PLAIN

    def test_an_unknown_order_is_rejected(self) -> None:
        member = founded("a").members["a"]
        with pytest.raises(UnknownProtocol):
            member.change_order(msgspec.structs.replace(PLAIN, order="ring"), 0)
        with pytest.raises(InvalidOption, match="is not a starvation policy"):
            member.change_order(msgspec.structs.replace(PLAIN, starvation="never"), 0)


class TestOneProcessPerName:
    def test_a_second_process_with_the_name_of_a_running_one_does_not_disturb_it(self) -> None:
        group = founded("abc")
        second = ProcessId("b", 99)
        alive = Heartbeat(group.members["a"].membership._config_hash, None, (), 0, (), ())
        for _ in range(20):
            for name in "ac":
                group.receive(second, name, frame_of(alive))
            group.run(50)
        assert set(group.views().values()) == {"abc"}
        assert group.applications["a"].reasons == ["the group was founded"]
        assert group.members["a"].rejections == {"name in use": 20}
        group.broadcast("b", "still here")
        group.wait_payloads("abc", "still here")

    def test_a_restart_after_a_crash_joins_once_the_crash_is_detected(self) -> None:
        group = founded("abc")
        group.kill("b")
        group.start("b", incarnation=2)
        killed_at = group.now
        group.wait_view("acb")
        assert group.now - killed_at < 4 * group.membership.failure_ns
        assert group.applications["a"].reasons[-1] == "b joined; b failed"

    def test_a_restart_with_a_lower_number_is_told_the_number_that_is_known(self) -> None:
        group = founded("abc")
        group.kill("b")
        member = group.start("b", incarnation=0)
        group.run_until(lambda: member.incarnation_known > 0)
        assert member.incarnation_known == 1 and group.views()["b"] == ""
        assert not group.members["a"].membership.neighbours.trusts(ProcessId("b"), group.now)
        group.start("b", incarnation=2)
        group.wait_view("acb")

    def test_a_number_that_is_in_use_is_not_told(self) -> None:
        group = founded("abc")
        alive = Heartbeat(group.members["a"].membership._config_hash, None, (), 0, (), ())
        group.receive(ProcessId("b", 0), "a", frame_of(alive))
        group.run(5)
        assert group.members["a"].rejections == {"earlier incarnation": 1}
        assert group.members["b"].incarnation_known == 1

    def test_a_restart_after_a_leave_joins_at_once(self) -> None:
        group = founded("abc")
        leaving = group.members["b"]
        leaving.leave(group.now)
        group.run_until(lambda: leaving.departed)
        group.start("b", incarnation=2)
        left_at = group.now
        group.wait_view("acb")
        assert group.now - left_at < group.membership.failure_ns

    def test_a_process_that_ends_without_agreement_says_goodbye(self) -> None:
        group = founded("abc")
        ending = group.members["b"]
        ending.end(group.now)
        group.run(5)
        group.start("b", incarnation=2)
        ended_at = group.now
        group.wait_view("acb")
        assert group.now - ended_at < group.membership.failure_ns


class TestRejoining:
    def test_the_next_incarnation_sends_unordered_messages_once(self) -> None:
        group = founded("abc")
        group.broadcast("c", "1")
        group.wait_payloads("abc", "1")
        group.broadcast("c", "2")
        group.run(2)  # on its way to the sequencer, and from there to nobody
        group.cut("c", "ab")
        group.run(1)
        group.broadcast("c", "3", priority=200)
        group.wait_view("ab")
        group.broadcast("c", "4")
        group.run(200)
        group.lost.clear()
        group.run_until(lambda: group.members["c"].departed)
        life = group.members["c"]
        assert life.departed == Departed(False, ViewReason(failed=("c",)))
        again = group.start("c", 2, life.unordered_messages())
        again.broadcast(b"5", 7)
        group.wait_view("abc")
        group.run_until(lambda: len(group.payloads("a")) == 5)
        group.run(20)
        assert group.payloads("a") == group.payloads("b")
        assert sorted(group.payloads("a")) == ["1", "2", "3", "4", "5"]
        of_level = [payload for payload in group.payloads("a") if payload != "3"]
        assert of_level == ["1", "2", "4", "5"], "what the application sent first comes first"

    def test_delivered_messages_are_not_sent_again(self) -> None:
        group = founded("abc")
        group.applications["c"].takes_messages = False
        group.broadcast("c", "1", "2")
        group.wait_payloads("ab", "1", "2")
        group.cut("c", "ab")
        group.wait_view("ab")
        group.lost.clear()
        group.run_until(lambda: group.members["c"].departed)
        unordered_messages = group.members["c"].unordered_messages()
        assert [str(batch) for batch in unordered_messages.batches] == ["c#1/7/0+2"]
        group.start("c", 2, unordered_messages)
        group.wait_view("abc")
        group.run(100)
        assert group.payloads("a") == ["1", "2"]

    def test_unordered_messages_survive_incarnations_that_were_never_in_a_view(self) -> None:
        group = founded("abc")
        group.cut("c", "ab")
        group.broadcast("c", "1")
        group.wait_view("ab")
        unordered_messages = group.members["c"].unordered_messages()
        for incarnation in (2, 3, 4):
            started = group.start("c", incarnation, unordered_messages)
            started.broadcast(b"%d" % incarnation, 7)
            group.run(50)
            assert started.view is None
            unordered_messages = started.unordered_messages()
        group.lost.clear()
        group.start("c", 5, unordered_messages)
        group.wait_payloads("ab", "1", "2", "3", "4")
        group.run(100)
        assert group.payloads("a") == group.payloads("b") == ["1", "2", "3", "4"], "each of them once"

    def test_a_later_incarnation_founds_no_second_group(self) -> None:
        group = founded("abc")
        group.cut("c", "ab")
        group.wait_view("ab")
        unordered_messages = group.members["c"].unordered_messages()
        alone = group.start("c", 2, unordered_messages, founders=1)
        group.run(1_000)
        assert alone.view is None


def test_the_head_is_the_next_view_or_message() -> None:
    group = Neighbourhood("a")
    member = group.members["a"]
    group.applications["a"].takes_messages = False
    group.wait_view("a")
    group.broadcast("a", "x", "y")
    group.run(5)
    head = member.head(group.now)
    assert isinstance(head, OrderedBatch)
    member.consume(1, group.now)
    again = member.head(group.now)
    assert again is head
    assert head.taken == 1

"""Safe messages, messages to some members, requests of clients; and the state."""

from priocast.core.events import Delivery, Restored, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import Scope
from priocast.member import Member
from priocast.membership.datagrams import frame_of, read
from priocast.membership.packets import ClientReply, ClientRequest, Control
from support.stacks import Neighbourhood, epoch_of, founded

CLIENT = ProcessId("client", 3)


class TestScopes:
    def test_a_safe_message_waits_until_it_is_stable_and_later_ones_wait_behind_it(self) -> None:
        group = founded("abc", failure_ms=60_000.0, slow_ms=60_000.0)
        group.lost |= {("c", "a"), ("c", "b")}  # c gets everything, but nobody hears of it
        group.broadcast("a", "agreed")
        group.wait_payloads("abc", "agreed")
        group.broadcast("a", "safe", scope=Scope(safe=True))
        group.broadcast("b", "behind")
        group.run(100)
        assert {tuple(group.payloads(name)) for name in "ab"} == {("agreed",)}
        group.lost.clear()
        group.wait_payloads("abc", "agreed", "safe", "behind")

    def test_safe_messages_do_not_wait_for_a_heartbeat(self) -> None:
        group = founded("abc", heartbeat_ms=1_000.0, failure_ms=60_000.0, slow_ms=60_000.0)
        group.run(2_000)
        for number in range(10):
            group.broadcast("b", str(number), scope=Scope(safe=True))
            group.run(10)
            assert len(group.payloads("c")) == number + 1

    def test_a_safe_message_is_delivered_when_the_member_that_lacks_it_is_excluded(self) -> None:
        group = founded("abc")
        group.lost |= {("a", "c"), ("b", "c"), ("c", "a"), ("c", "b")}
        group.broadcast("a", "safe", scope=Scope(safe=True))
        group.run(30)
        assert group.payloads("a") == []
        group.wait_view("ab")
        group.wait_payloads("ab", "safe")

    def test_in_a_safe_group_every_message_is_safe(self) -> None:
        group = founded("abc", delivery="safe", failure_ms=60_000.0, slow_ms=60_000.0)
        group.lost |= {("c", "a"), ("c", "b")}
        group.broadcast("a", "1")
        group.run(100)
        assert group.payloads("a") == group.payloads("b") == []
        group.lost.clear()
        group.wait_payloads("abc", "1")

    def test_a_message_to_some_has_a_position_everywhere(self) -> None:
        group = founded("abc")
        group.broadcast("a", "for all")
        group.broadcast("a", "for b", "and again", scope=Scope(to=("b",)))
        group.broadcast("a", "for nobody", scope=Scope(to=("nobody",)))
        group.broadcast("a", "for all again")
        group.run_until(lambda: "for all again" in group.payloads("c"))
        group.run(10)
        placed = {
            name: [(each.position, each.message.payload.decode()) for each in application.deliveries]
            for name, application in group.applications.items()
        }
        assert placed["a"] == placed["c"] == [(0, "for all"), (4, "for all again")]
        assert placed["b"] == [(0, "for all"), (1, "for b"), (2, "and again"), (4, "for all again")]

    def test_skipped_messages_count_as_consumed(self) -> None:
        group = founded("abc", window=4)
        group.broadcast("a", *map(str, range(50)), scope=Scope(to=("b",)))
        group.wait_payloads("b", *map(str, range(50)))
        assert group.payloads("a") == group.payloads("c") == []


class TestPartitions:
    def test_a_message_is_delivered_once_its_sender_knows_its_position(self) -> None:
        group = founded("abc", policy="partitionable", failure_ms=60_000.0, slow_ms=60_000.0)
        group.broadcast("c", "1")
        group.run(1)
        group.lost.add(("a", "c"))  # the sequencer's answer does not reach the sender
        group.run(100)
        assert group.payloads("a") == group.payloads("b") == []
        group.lost.clear()
        group.wait_payloads("abc", "1")

    def test_each_side_of_a_partition_continues_and_they_merge(self) -> None:
        group = founded("abcd", policy="partitionable")
        group.cut("ab", "cd")
        group.wait_view("ab")
        group.wait_view("cd")
        group.broadcast("b", "left")
        group.broadcast("d", "right", "right again")
        group.wait_payloads("ab", "left")
        group.wait_payloads("cd", "right", "right again")
        group.lost.clear()
        group.run_until(lambda: all(len(view) == 4 for view in group.views().values()))
        group.broadcast("c", "together")
        group.wait_payloads("ab", "left", "together")
        group.wait_payloads("cd", "right", "right again", "together")
        positions = [
            [delivery.position for delivery in group.applications[name].deliveries] for name in "abcd"
        ]
        assert positions == [[0, 2]] * 2 + [[0, 1, 2]] * 2, "the merged view begins after the longer side"


class TestClients:
    def _ask(self, group: Neighbourhood, to: str, request: ClientRequest) -> None:
        group.receive(CLIENT, to, frame_of(request))

    def _answers(self, group: Neighbourhood) -> list[Control]:
        letters, group.letters = group.letters, []
        return [read(sender, frame) for to, sender, frame in letters if to == CLIENT.name]

    def test_a_request_is_broadcast_and_answered_with_its_position(self) -> None:
        group = founded("abc")
        group.broadcast("a", "before")
        group.wait_payloads("abc", "before")
        self._ask(group, "b", ClientRequest(1, 7, Scope(), b"please"))
        group.wait_payloads("abc", "before", "please")
        group.run(5)
        assert self._answers(group) == [ClientReply(1, 7, 1, "")]
        delivery: Delivery = group.applications["c"].deliveries[-1]
        assert delivery.message.sender == ProcessId("b")
        assert (delivery.message.scope.client, delivery.message.scope.request) == ("client#3", 1)

    def test_a_repeated_request_has_one_position(self) -> None:
        group = founded("abc")
        for name in "abcab":
            self._ask(group, name, ClientRequest(1, 7, Scope(), b"please"))
        group.run(30)
        for name in "abc":
            assert group.payloads(name) == ["please"]
        assert ClientReply(1, 7, 0, "") in self._answers(group)
        self._ask(group, "c", ClientRequest(1, 7, Scope(), b"please"))
        group.run(5)
        assert self._answers(group) == [ClientReply(1, 7, -1, "")], (
            "it has a position, which is not remembered"
        )
        assert group.payloads("a") == ["please"]

    def test_a_request_has_one_position_although_the_view_changes(self) -> None:
        group = founded("abc")
        self._ask(group, "b", ClientRequest(1, 7, Scope(), b"please"))
        group.run(4)
        group.kill("b")
        self._ask(group, "c", ClientRequest(1, 7, Scope(), b"please"))
        group.wait_view("ac")
        group.run(20)
        self._ask(group, "a", ClientRequest(1, 7, Scope(), b"please"))
        group.run(50)
        assert group.payloads("a") == group.payloads("c") == ["please"]

    def test_a_joining_member_knows_which_requests_were_delivered(self) -> None:
        group = founded("ab")
        self._ask(group, "a", ClientRequest(1, 7, Scope(), b"please"))
        group.wait_payloads("ab", "please")
        group.start("c")
        group.wait_view("abc")
        group.run(5)
        self._answers(group)
        self._ask(group, "c", ClientRequest(1, 7, Scope(), b"please"))
        group.run(30)
        assert self._answers(group) == [ClientReply(1, 7, -1, "")]
        assert group.payloads("c") == []
        self._ask(group, "c", ClientRequest(2, 7, Scope(), b"more"))
        group.wait_payloads("c", "more")
        assert group.payloads("a") == ["please", "more"]

    def test_a_request_to_a_member_without_a_view_or_room_is_ignored(self) -> None:
        group = Neighbourhood("a", founders=2, queue_max=1)
        self._ask(group, "a", ClientRequest(1, 7, Scope(), b"please"))
        group.run(50)
        group.start("b")
        group.wait_view("ab")
        group.broadcast("a", "full")
        self._ask(group, "a", ClientRequest(1, 7, Scope(), b"please"))
        group.run(50)
        assert group.payloads("a") == ["full"]
        assert self._answers(group) == []


class TestState:
    def test_a_new_member_continues_from_the_state_of_the_group(self) -> None:
        group = founded("ab", state=True)
        group.broadcast("a", *map(str, range(30)))
        group.wait_payloads("ab", *map(str, range(30)))
        group.start("c")
        group.wait_view("abc")
        group.broadcast("b", "next")
        application = group.applications["c"]
        group.run_until(lambda: application.pages[-1:] == [b"next"])
        assert application.pages == group.applications["a"].pages
        assert [type(event) for event in application.events] == [ViewChange, Restored]
        assert group.payloads("c") == ["next"]

    def test_while_the_state_is_awaited_the_group_does_not_wait(self) -> None:
        group = founded("abc", founders=3, state=True, window=4)
        group.start("d")
        group.wait_view("abcd")
        group.applications["a"].takes_messages = True
        assert epoch_of(group.members["d"]).view.number == 2
        group.lost |= {(name, "d") for name in "bc"}  # only the first one can give its state
        group.broadcast("b", *map(str, range(40)))
        group.wait_payloads("abc", *map(str, range(40)))

    def test_a_donor_that_fails_is_replaced(self) -> None:
        group = founded("abc", state=True)
        group.broadcast("a", "x" * 40_000, "y" * 40_000, "z" * 40_000)
        group.run_until(lambda: len(group.applications["c"].payloads) == 3)
        group.start("d")
        group.wait_view("abcd")
        restoring = group.members["d"].state.restoration
        assert restoring is not None
        assert restoring.donor is not None
        group.kill(restoring.donor.name)
        group.run_until(lambda: len(group.applications["d"].pages) == 3)
        assert group.applications["d"].pages == group.applications["c"].pages

    def test_a_donor_may_not_leave_during_the_transfer(self) -> None:
        group = founded("ab", state=True)
        group.broadcast("a", *("x" * 40_000 for _ in range(20)))
        group.run_until(lambda: len(group.applications["b"].payloads) == 20)
        assert group.members["a"].may_leave(group.now)
        group.start("c")
        group.wait_view("abc")
        restoring = group.members["c"].state.restoration
        assert restoring is not None
        assert restoring.donor is not None
        donor = group.members[restoring.donor.name]
        group.run(2)
        assert not donor.may_leave(group.now)
        group.run_until(lambda: len(group.applications["c"].pages) == 20)
        group.run(200)
        assert donor.may_leave(group.now)

    def test_founders_restore_no_state(self) -> None:
        group = founded("abc", state=True)
        group.run(200)
        for application in group.applications.values():
            assert [type(event) for event in application.events] == [ViewChange]


def _bodies(member: Member, now: int) -> list[bytes]:
    """What a member transmits over its links."""
    return [
        frame.body for _, frames in member.frames(now) for frame in frames if frame.channel and frame.body
    ]


def test_a_turn_that_was_missed_without_a_quorum_is_made_up_for() -> None:
    """Nothing else may come that would give the protocol a turn: the message must not wait for it."""
    group = founded("ab")
    member = group.members["b"]
    member.membership.trigger.suspended = True
    member.broadcast(b"x", 0)
    member.turn(group.now)
    assert not _bodies(member, group.now)
    assert not member.act(group.now), "there is no quorum yet"
    member.membership.trigger.suspended = False
    member.turn(group.now)
    assert _bodies(member, group.now)
    assert not member.act(group.now)

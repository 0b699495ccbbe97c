"""The search: it meets every state once, checks each, and tells the shortest story of what it finds."""

from collections import deque
from typing import Any

import pytest

from exploration.scenes import broken, explored, holds, scenario
from priocast.core.guarantees import FIFO_AMONG_EQUALS, INTEGRITY, LIVENESS, TOTAL_ORDER, VIEW_SYNCHRONY
from priocast.core.identity import ProcessId
from priocast.core.protocol import Protocol, Turn
from priocast.exploration.explorer import Progress, explore
from priocast.exploration.space import Space
from priocast.exploration.violation import OWN_FAULT, PEER_FAULT
from priocast.protocols import PROTOCOLS
from priocast.protocols.flow.packets import Ordered
from priocast.protocols.sequencer.ub import SequencerUb

ORDER = "sequencer-ub"


def mutant(monkeypatch: pytest.MonkeyPatch, **methods: Any) -> None:
    monkeypatch.setitem(PROTOCOLS, ORDER, type("Mutant", (SequencerUb,), methods))


def test_one_member_and_one_message_are_a_short_story() -> None:
    """It says the message and hears itself; then it consumes it."""
    seen = holds(ORDER, "a:low", processes=1)
    assert (seen.states, seen.transitions, seen.rests, seen.depth) == (3, 2, 1, 2)


def test_two_members_do_everything_in_every_order() -> None:
    """B says it, a orders it; then a consumes it, it comes to b and b consumes it: that is a grid."""
    seen = holds(ORDER, "b:low")
    assert (seen.states, seen.transitions, seen.rests) == (3 + 2 * 2 + 1, 2 + 3 + 4, 1)


def test_free_turns_let_inputs_gather() -> None:
    """With turns of their own, two messages may share a packet."""
    scenes = {free: Space(scenario(ORDER, "b:low b:low", free_turns=free)) for free in (False, True)}
    most = {}
    for free, space in scenes.items():
        seen, frontier = {space.first}, deque([space.first])
        while frontier:
            for _, _, _, after in space.moves(frontier.popleft()):
                if after not in seen:
                    seen.add(after)
                    frontier.append(after)
        packets = [space.locals.packets[number] for number in range(len(space.locals.packets))]
        most[free] = max(batch.count for packet in packets for batch in packet.messages)
    assert most == {False: 1, True: 2}


def test_the_search_says_how_far_it_is() -> None:
    told: list[Progress] = []
    seen = explore(scenario(ORDER, "a:low b:high b:low", 3), told.append)
    assert len(told) > 1
    assert told == sorted(told)
    assert told[0] == Progress(1, 0, 0)
    assert all(each.explored <= each.states <= seen.states for each in told)


def test_the_ends_of_a_view_are_looked_at_for_all_who_may_go_on() -> None:
    seen = holds(ORDER, "a:low b:high", view_ends=True)
    assert seen.endings == 3 * seen.states


def test_whoever_delivers_by_arrival_is_found_with_the_shortest_story(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def on_turn(self: Any, event: Turn, now: int) -> None:
        while self.outgoing:
            batch = self.outgoing.take(1)
            self.send_each(Ordered(0, (batch,)))

    def on_received(self: Any, event: Any, now: int) -> None:
        self.queue_ordered(event.packet.batches[0])

    monkeypatch.setattr(Ordered, "TO_ALL", False)
    mutant(monkeypatch, on_turn=on_turn, on_received=on_received, on_consumed=lambda *_: None)
    guarantee, story = broken(ORDER, "a:low b:high")
    assert guarantee == TOTAL_ORDER
    assert story == (
        "a says low-1\n      a -> b: ordered 0 (low-1)",
        "a consumes low-1",
        "b says high-2\n      b -> a: ordered 0 (high-2)",
        "b consumes high-2",
    )


def test_whoever_forgets_a_message_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_turn(self: Any, event: Turn, now: int) -> None:
        if self.outgoing.count < 2:
            SequencerUb.on_turn(self, event, now)

    mutant(monkeypatch, on_turn=on_turn)
    assert explored(ORDER, "a:low a:low").found is None
    assert broken(ORDER, "a:low a:low", free_turns=True)[0] == LIVENESS


def test_whoever_offers_a_message_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def appended_twice(self: Any, batches: Any, is_bottleneck: bool) -> None:
        for batch in (*batches, *batches):
            self.queue_ordered(batch)

    mutant(monkeypatch, append_ordered=appended_twice, on_consumed=lambda *_: None)
    assert broken(ORDER, "a:low")[0] == INTEGRITY


def test_whoever_lets_the_last_go_first_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = SequencerUb._on_ordered

    def on_ordered(self: Any, sender: ProcessId, ordered: Ordered, packet_id: tuple[int, int]) -> None:
        original(self, sender, ordered, packet_id)
        places = [each.position for each in self._ordered_batches]
        self._ordered_batches = deque(reversed(self._ordered_batches))
        for place, ordered_batch in zip(places, self._ordered_batches, strict=True):
            ordered_batch.position = place

    mutant(monkeypatch, _on_ordered=on_ordered)
    assert broken(ORDER, "a:low a:low", processes=1)[0] == FIFO_AMONG_EQUALS


def test_whoever_changes_by_being_asked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def head(self: Any) -> None:
        self.position_next += 1

    mutant(monkeypatch, head=head)
    with pytest.raises(Exception, match="after it was asked for its head"):
        explored(ORDER, "a:low")


def test_whoever_accuses_an_honest_member_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_turn(self: Any, event: Turn, now: int) -> None:
        if self.outgoing:
            self.send_all(Ordered(7, (self.outgoing.take(1),)))

    mutant(monkeypatch, on_turn=on_turn)
    assert broken(ORDER, "a:low")[0] == PEER_FAULT


def test_a_fault_of_our_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_consumed(self: Any, batch: Any, count: int, now: int) -> None:
        assert batch.level < 200, "it is too urgent"

    mutant(monkeypatch, on_consumed=on_consumed)
    guarantee, story = broken(ORDER, "a:low b:high")
    assert guarantee == OWN_FAULT
    assert story[-1] == "a consumes high-2"


def test_whoever_ends_a_view_by_what_it_alone_knows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places that are told to each one by itself are lost with the view."""
    monkeypatch.setattr(Ordered, "TO_ALL", False)
    monkeypatch.setattr(Protocol, "send_all", Protocol.send_each)
    assert broken(ORDER, "a:low", view_ends=True)[0] == VIEW_SYNCHRONY
    assert explored(ORDER, "a:low").found is None

"""The search visits every state once, checks each, and gives the shortest counterexample."""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from exploration.scenarios import assert_holds, counterexample, explored, scenario
from priocast.core.guarantees import FIFO_AMONG_EQUALS, INTEGRITY, LIVENESS, TOTAL_ORDER, VIEW_SYNCHRONY
from priocast.core.identity import ProcessId
from priocast.core.protocol import Turn
from priocast.exploration.explorer import ExplorationProgress, explore
from priocast.exploration.state_graph import StateGraph
from priocast.exploration.violation import OWN_FAULT, PEER_FAULT
from priocast.protocols import PROTOCOLS
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.flow.packets import Ordered
from priocast.protocols.sequencer.ub import SequencerUb

ORDER = "sequencer-ub"


def mutate(monkeypatch: pytest.MonkeyPatch, **methods: Any) -> None:
    """Replace methods of the protocol."""
    monkeypatch.setitem(PROTOCOLS, ORDER, type("Mutant", (SequencerUb,), methods))


def test_one_member_and_one_message_have_three_states() -> None:
    """It broadcasts the message and receives it; then it consumes it."""
    seen = assert_holds(ORDER, "a:low", processes=1)
    assert (seen.states, seen.transitions, seen.terminal_states, seen.depth) == (3, 2, 1, 2)


def test_two_members_do_everything_in_every_order() -> None:
    """B broadcasts, a orders; then a's consumption and b's reception and consumption form a grid."""
    seen = assert_holds(ORDER, "b:low")
    assert (seen.states, seen.transitions, seen.terminal_states) == (3 + 2 * 2 + 1, 2 + 3 + 4, 1)


def test_free_turns_let_inputs_accumulate() -> None:
    """With turns as actions of their own, two messages may share a packet."""
    graphs = {free: StateGraph(scenario(ORDER, "b:low b:low", free_turns=free)) for free in (False, True)}
    most = {}
    for free, graph in graphs.items():
        seen, frontier = {graph.initial}, deque([graph.initial])
        while frontier:
            for _, _, _, following in graph.transitions(frontier.popleft()):
                if following not in seen:
                    seen.add(following)
                    frontier.append(following)
        packets = [graph.member_states.packets[number] for number in range(len(graph.member_states.packets))]
        most[free] = max(batch.count for packet in packets for batch in packet.messages)
    assert most == {False: 1, True: 2}


def test_the_search_reports_its_progress() -> None:
    reported: list[ExplorationProgress] = []
    seen = explore(scenario(ORDER, "a:low b:high b:low", 3), reported.append)
    assert len(reported) > 1
    assert reported == sorted(reported)
    assert reported[0] == ExplorationProgress(1, 0, 0)
    assert all(each.explored <= each.states <= seen.states for each in reported)


def test_the_view_ends_in_every_state_for_every_set_of_survivors() -> None:
    seen = assert_holds(ORDER, "a:low b:high", view_ends=True)
    assert seen.view_ends == 3 * seen.states


# Mutants of the sequencer, one for each property that the search checks


def _delivers_by_arrival(patch: pytest.MonkeyPatch) -> None:
    def on_turn(self: Any, event: Turn, now: int) -> None:
        while self.outgoing:
            batch = self.outgoing.take(1)
            self.send_each(Ordered(0, (batch,)))

    def on_received(self: Any, event: Any, now: int) -> None:
        self.queue_ordered(event.packet.batches[0])

    patch.setattr(Ordered, "TO_ALL", False)
    mutate(patch, on_turn=on_turn, on_received=on_received, on_consumed=lambda *_: None)


def _loses_a_second_message(patch: pytest.MonkeyPatch) -> None:
    def on_turn(self: Any, event: Turn, now: int) -> None:
        if self.outgoing.count < 2:
            SequencerUb.on_turn(self, event, now)

    mutate(patch, on_turn=on_turn)


def _offers_a_message_twice(patch: pytest.MonkeyPatch) -> None:
    def appended_twice(self: Any, batches: Any, is_bottleneck: bool) -> None:
        for batch in (*batches, *batches):
            self.queue_ordered(batch)

    mutate(patch, append_ordered=appended_twice, on_consumed=lambda *_: None)


def _offers_the_last_message_first(patch: pytest.MonkeyPatch) -> None:
    original = SequencerUb._on_ordered

    def on_ordered(self: Any, sender: ProcessId, ordered: Ordered, packet_id: tuple[int, int]) -> None:
        original(self, sender, ordered, packet_id)
        positions = [each.position for each in self._ordered_batches]
        self._ordered_batches = deque(reversed(self._ordered_batches))
        for position, ordered_batch in zip(positions, self._ordered_batches, strict=True):
            ordered_batch.position = position

    mutate(patch, _on_ordered=on_ordered)


def _blames_a_correct_member(patch: pytest.MonkeyPatch) -> None:
    def on_turn(self: Any, event: Turn, now: int) -> None:
        if self.outgoing:
            self.send_all(Ordered(7, (self.outgoing.take(1),)))

    mutate(patch, on_turn=on_turn)


def _fails_on_an_urgent_message(patch: pytest.MonkeyPatch) -> None:
    def on_consumed(self: Any, batch: Any, count: int, now: int) -> None:
        assert batch.level < 200, "too urgent"

    mutate(patch, on_consumed=on_consumed)


def _positions_are_lost_with_the_view(patch: pytest.MonkeyPatch) -> None:
    """Packets that give positions are not kept for the flush."""
    patch.setattr(Ordered, "TO_ALL", False)
    patch.setattr(OrderingProtocol, "send_all", OrderingProtocol.send_each)


class Case(NamedTuple):
    mutant: Callable[[pytest.MonkeyPatch], None]
    messages: str
    options: dict[str, Any]
    guarantee: str
    last_step: str = ""
    length: int = 0


CASES = [
    Case(_delivers_by_arrival, "a:low b:high", {}, TOTAL_ORDER, "b consumes high-2", 4),
    Case(_loses_a_second_message, "a:low a:low", {"free_turns": True}, LIVENESS),
    Case(_offers_a_message_twice, "a:low", {}, INTEGRITY),
    Case(_offers_the_last_message_first, "a:low a:low", {"processes": 1}, FIFO_AMONG_EQUALS),
    Case(_blames_a_correct_member, "a:low", {}, PEER_FAULT),  # the promise: no correct member is rejected
    Case(_fails_on_an_urgent_message, "a:low b:high", {}, OWN_FAULT, "a consumes high-2"),
    Case(_positions_are_lost_with_the_view, "a:low", {"view_ends": True}, VIEW_SYNCHRONY),
]


@pytest.mark.parametrize("case", CASES, ids=[case.mutant.__name__.strip("_") for case in CASES])
def test_the_search_finds_the_mutant(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.mutant(monkeypatch)
    guarantee, steps = counterexample(ORDER, case.messages, **case.options)
    assert guarantee == case.guarantee, steps
    assert not case.last_step or steps[-1] == case.last_step
    assert not case.length or len(steps) == case.length


@pytest.mark.parametrize(
    ("mutant", "messages"),
    [(_loses_a_second_message, "a:low a:low"), (_positions_are_lost_with_the_view, "a:low")],
)
def test_a_mutant_is_not_found_without_the_option_that_shows_it(
    mutant: Callable[[pytest.MonkeyPatch], None], messages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert explored(ORDER, messages).counterexample is None


def test_a_counterexample_shows_actions_and_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    _delivers_by_arrival(monkeypatch)
    assert counterexample(ORDER, "a:low b:high")[1] == (
        "a broadcasts low-1\n      a -> b: ordered 0 (low-1)",
        "a consumes low-1",
        "b broadcasts high-2\n      b -> a: ordered 0 (high-2)",
        "b consumes high-2",
    )


def test_a_protocol_that_changes_when_asked_for_its_head_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def head(self: Any) -> None:
        self.position_next += 1

    mutate(monkeypatch, head=head)
    with pytest.raises(Exception, match="changes its state when asked for its head"):
        explored(ORDER, "a:low")

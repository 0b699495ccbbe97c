"""Deliberate faults in the token ring: one plausible mistake each, and the guarantee by which it is found."""

import pytest

from priocast.core.errors import PeerFault
from priocast.core.guarantees import BOUNDED_WINDOW, FIFO_AMONG_EQUALS, LIVENESS, PRIORITY
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import OrderingOptions, Turn
from priocast.core.starvation import FirstInFirstOut
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.packets import Ordered
from priocast.protocols.ring.ring import Ring
from priocast.protocols.ring.token_packets import TokenRequest
from priocast.protocols.ring.token_requests import TokenRequests
from priocast.protocols.ring.token_ring import TokenRing
from protocols.guarantees import check_window
from protocols.harness import Group, Violation
from protocols.mutants import (
    Mutant,
    Patch,
    check_found_by_waiting,
    check_found_in_view_sequences,
    check_schedules_find,
    check_script_finds,
    name_of,
)
from protocols.shared_mutants import a_sender_sends_what_came_first
from protocols.trusting import trusting

ORDER = "token-ring"


def a_holder_never_passes_the_token(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TokenRing, "_pass_token", lambda *_: None)


def the_token_never_rests(patch: pytest.MonkeyPatch) -> None:
    """The papers' token circulates although no member has anything to send."""
    patch.setattr(TokenRing, "_requesting", lambda self: list(self._ring.others))


def a_holder_without_room_passes_the_token(patch: pytest.MonkeyPatch) -> None:
    """It circulates until the slowest member consumes something."""
    patch.setattr(TokenRing, "_has_room", lambda *_: True)


def the_token_is_accepted_early(patch: pytest.MonkeyPatch) -> None:
    """A holder that does not know what is ordered does not know the room that is left."""

    def accept(self: Ring, position_next: int) -> None:
        if self._token is not None:
            original(self, self._token.position)

    original = Ring.accept
    patch.setattr(Ring, "accept", accept)


def the_token_is_never_requested(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TokenRing, "_request_token", lambda _: None)


def a_former_holder_does_not_request_again(patch: pytest.MonkeyPatch) -> None:
    """A lost wake-up: the holder believes that the previous holder has sent everything."""

    def request_token(self: TokenRing) -> None:
        if self._token_requests._of[self.me].number == 0:
            original(self)

    original = TokenRing._request_token
    patch.setattr(TokenRing, "_request_token", request_token)


def late_requests_are_accepted(patch: pytest.MonkeyPatch) -> None:
    """A request that the token has overtaken calls it to where there is nothing to send."""

    def learn(self: TokenRequests, member: ProcessId, request: TokenRequest) -> None:
        if member != self._me:
            self._of[member] = request

    patch.setattr(TokenRequests, "learn", learn)


def the_token_forgets_the_holder_s_request(patch: pytest.MonkeyPatch) -> None:
    def pass_token(self: TokenRing, to: ProcessId) -> None:
        queue, self.outgoing = self.outgoing, PriorityQueue(FirstInFirstOut(), 1, 1)
        original(self, to)
        self.outgoing = queue
        request = self._token_requests._of[self.me]
        self._token_requests._of[self.me] = TokenRequest(request.number, 255)

    original = TokenRing._pass_token
    patch.setattr(TokenRing, "_pass_token", pass_token)


def messages_of_others_take_no_room(patch: pytest.MonkeyPatch) -> None:
    def append(self: TokenRing, sender: ProcessId, ordered: Ordered, packet_id: tuple[int, int]) -> None:
        ordered_count = self._grants.ordered_count
        original(self, sender, ordered, packet_id)
        self._grants.ordered_count = ordered_count

    original = TokenRing._append
    patch.setattr(TokenRing, "_append", append)


def consumption_is_reported_to_the_coordinator_only(patch: pytest.MonkeyPatch) -> None:
    def init(self: TokenRing, *given: object) -> None:
        original(self, *given)  # type: ignore[arg-type]
        self._reports_to = self.view.coordinator

    original = TokenRing.__init__
    patch.setattr(TokenRing, "__init__", init)


def the_rest_of_a_visit_goes_last(patch: pytest.MonkeyPatch) -> None:
    original = TokenRing.on_turn

    def on_turn(self: TokenRing, event: Turn, now: int) -> None:
        original(self, event, now)
        batches: list[Batch] = self.outgoing.drain()
        for batch in reversed(batches):
            self.outgoing.put(batch, now)

    patch.setattr(TokenRing, "on_turn", on_turn)


def the_holder_names_no_bottleneck(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Grants, "bottleneck", lambda *_: None)


def every_view_begins_at_0(patch: pytest.MonkeyPatch) -> None:
    original = TokenRing.__init__

    def init(self: TokenRing, *given: object) -> None:
        original(self, *given)  # type: ignore[arg-type]
        self._ring.position = None if self._ring.position is None else 0

    patch.setattr(TokenRing, "__init__", init)


IN_SCHEDULES: list[Mutant] = [
    (a_holder_never_passes_the_token, {LIVENESS}),
    (the_token_never_rests, {LIVENESS}),
    (the_token_is_never_requested, {LIVENESS}),
    (late_requests_are_accepted, {LIVENESS}),
    (a_former_holder_does_not_request_again, {LIVENESS}),
    (the_token_forgets_the_holder_s_request, {LIVENESS}),
    (messages_of_others_take_no_room, {BOUNDED_WINDOW}),
    (consumption_is_reported_to_the_coordinator_only, {LIVENESS}),
    (a_sender_sends_what_came_first, {PRIORITY}),
    (trusting(the_rest_of_a_visit_goes_last), {FIFO_AMONG_EQUALS}),
]


@pytest.mark.parametrize("mutant", IN_SCHEDULES, ids=name_of)
def test_the_property_suite_finds_the_mutant_of_the_ring(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_schedules_find(mutant, ORDER, monkeypatch)


def test_the_property_of_waiting_finds_that_the_holder_names_no_bottleneck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    the_holder_names_no_bottleneck(monkeypatch)
    check_found_by_waiting(ORDER, {LIVENESS})


def test_view_sequences_find_that_every_view_begins_at_0(monkeypatch: pytest.MonkeyPatch) -> None:
    trusting(every_view_begins_at_0)(monkeypatch)
    check_found_in_view_sequences(ORDER, {LIVENESS})


def test_the_token_does_not_circulate_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_the_window() -> Group:
        group = Group(["a", "b", "c"], ORDER, OrderingOptions(window=1))
        for name in group.members:
            group.broadcast(name, 0, [name.encode()] * 2)
        return group

    assert fill_the_window().settle(rounds_max=100, consumers=())
    a_holder_without_room_passes_the_token(monkeypatch)
    assert not fill_the_window().settle(rounds_max=100, consumers=())


def _pass_the_token_before_the_messages() -> Group:
    """The token reaches c through b before a's messages do, as in the script `token-accepted-late`."""
    group = Group(["a", "b", "c"], ORDER, OrderingOptions(window=2))
    for name in group.members:
        group.broadcast(name, 0, [name.encode()])
    for name in ("b", "c"):
        group.turn(name)
        group.deliver(name, "a")
    group.turn("a")
    group.deliver("a", "b", 2)
    group.turn("b")
    group.deliver("b", "c", 3)
    group.turn("c")
    return group


def test_a_token_that_is_accepted_early_shows_when_the_messages_come(monkeypatch: pytest.MonkeyPatch) -> None:
    the_token_is_accepted_early(monkeypatch)
    group = _pass_the_token_before_the_messages()
    with pytest.raises(PeerFault, match="a#1 orders position 0 although c#1 has the token"):
        group.deliver("a", "c")


def test_a_holder_that_accepts_the_token_early_exceeds_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_window(_pass_the_token_before_the_messages())
    the_token_is_accepted_early(monkeypatch)
    with pytest.raises(Violation, match="3 messages are ordered, not consumed; the window is 2"):
        check_window(_pass_the_token_before_the_messages())


@pytest.mark.parametrize("mutate", [the_token_is_accepted_early, a_holder_never_passes_the_token])
def test_the_scripts_find_the_mutant_of_the_ring(mutate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    check_script_finds(mutate, "token-accepted-late", monkeypatch, may_stop=True)

"""A link that does not get through although its peer is heard is given up, and nobody else is."""

from typing import Any

import pytest

from priocast.core.identity import ProcessId
from priocast.links.frame import RELIABLE_NETWORK, Frame, LinkOptions
from priocast.membership.datagrams import read
from priocast.membership.packets import Heartbeat, Ordering
from support.stacks import Neighbourhood, epoch_of

SLOW_MS = 2_000
LARGE_BYTES = 1_000


class BadPath(Neighbourhood):
    """On the ways in `narrow`, frames above a size are lost; members in `mute` acknowledge nothing.

    Members in `silent_voters` send heartbeats and nothing else.
    """

    def __init__(self, names: str, **options: Any) -> None:
        super().__init__(names, slow_ms=SLOW_MS, **options)
        self.narrow: set[tuple[str, str]] = set()
        self.mute: set[str] = set()
        self.silent_voters: set[str] = set()
        self.wait_view(names)
        self.run(5)

    def _deliver(self) -> None:
        for index, (at, sender, to, frames) in enumerate(self._in_flight):
            self._in_flight[index] = at, sender, to, self._passing(sender, to, frames)
        super()._deliver()

    def _passing(self, sender: ProcessId, to: str, frames: list[Frame]) -> list[Frame]:
        if (sender.name, to) in self.narrow:
            return [frame for frame in frames if len(frame.body) <= LARGE_BYTES]
        if sender.name in self.mute:
            return [_without_acknowledgement(frame) for frame in frames]
        if sender.name in self.silent_voters:
            return [frame for frame in frames if isinstance(read(sender, frame), Heartbeat)]
        return frames


def _without_acknowledgement(frame: Frame) -> Frame:
    return Frame(frame.channel, frame.sequence, 0, 0, frame.body) if frame.channel else frame


def late(group: Neighbourhood, name: str) -> dict[str, int]:
    """The peers that a member reports as not acknowledging, and for how many milliseconds."""
    return {
        peer.name: ns // 1_000_000 for peer, ns in group.members[name].progress.unacknowledged.late().items()
    }


@pytest.mark.parametrize("links", [LinkOptions(), RELIABLE_NETWORK], ids=["lossy", "reliable"])
def test_a_path_that_drops_large_frames(links: LinkOptions) -> None:
    group = BadPath("abc", link_options=links)
    group.narrow = {("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")}
    group.broadcast("a", "x" * 3 * LARGE_BYTES)
    group.run(SLOW_MS // 2 - 50)
    assert late(group, "a") == {}
    group.run(150)
    assert list(late(group, "a")) == ["c"], "it is reported at half the time"
    group.wait_view("ab")
    assert "c was evicted (unacknowledged)" in group.applications["a"].reasons[-1]
    group.run_until(lambda: list(map(len, group.payloads("b"))) == [3 * LARGE_BYTES])
    assert late(group, "a") == {}


def test_in_a_partitionable_group_the_sides_separate() -> None:
    group = BadPath("abc", link_options=LinkOptions(), policy="partitionable")
    group.narrow = {("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")}
    group.broadcast("a", "x" * 3 * LARGE_BYTES)
    group.wait_view("ab")
    assert group.applications["a"].reasons[-1] == "c failed"
    assert [len(group.payloads(name)) for name in "abc"] == [1, 1, 0], "c is on another side"
    group.run(500)
    group.wait_view("abc")
    group.broadcast("b", "small enough")
    group.run_until(lambda: all("small enough" in group.payloads(name) for name in "abc"))
    assert [len(group.payloads(name)) for name in "abc"] == [2, 2, 1], "what one side delivered stays there"
    assert group.members["c"].departed is None, "nobody is evicted"


def test_a_voter_that_never_answers_does_not_keep_the_view_from_changing() -> None:
    group = BadPath("abc")
    group.silent_voters = {"c"}
    group.members["a"].change_order(Ordering("causal-history", True, "none"), group.now)
    group.wait_view("ab")
    assert group.members["b"].membership.ordering.order == "causal-history"


def test_small_frames_that_pass_do_not_hide_a_large_one() -> None:
    group = BadPath("abc", link_options=LinkOptions())
    group.narrow = {("a", "c")}
    group.broadcast("a", "x" * 3 * LARGE_BYTES)
    for number in range(2 * SLOW_MS // 50):
        group.broadcast("a", str(number))
        group.run(50)
    assert group.views()["a"] == "ab"


def test_a_member_that_reads_but_never_acknowledges() -> None:
    group = BadPath("abc")
    group.mute = {"c"}
    for number in range(2 * SLOW_MS // 50):
        group.broadcast("a", str(number))
        group.run(50)
    group.wait_view("ab", of="ab")
    assert "c was evicted (unacknowledged)" in group.applications["a"].reasons[-1]
    group.run_until(lambda: len(group.payloads("b")) == 2 * SLOW_MS // 50)


def test_an_application_that_does_not_consume_is_not_unacknowledged() -> None:
    group = BadPath("abc", window=4)
    group.applications["c"].takes_messages = False
    group.broadcast("a", *map(str, range(50)))
    for _ in range(SLOW_MS + 500):
        group.run(1)
        assert not late(group, "a") and not late(group, "b")
    group.wait_view("ab", of="ab")
    assert group.applications["a"].reasons[-1] == "c was evicted (slow)"


def test_a_local_pause_is_not_the_fault_of_a_peer() -> None:
    group = BadPath("abc")
    group.broadcast("a", "before the pause")
    paused = group.members["a"]
    paused.turn(group.now)
    assert not all(link.idle for link in epoch_of(paused).links.values())
    paused.frames(group.now)
    later = group.now + 50 * SLOW_MS * 1_000_000
    paused.tick(later)
    assert not paused.progress.unacknowledged.late()
    assert not paused.membership.trigger.evictions


def test_a_silent_peer_is_left_to_the_failure_detector() -> None:
    group = BadPath("abc")
    group.kill("c")
    group.broadcast("a", "to all")
    group.wait_view("ab")
    assert group.applications["a"].reasons[-1] == "c failed"

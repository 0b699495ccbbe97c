"""The largest view, of members with the longest names, is founded, loses members and admits others.

Two members are real. The others are scripted: they answer what the real ones send, which is encoded and
decoded as on a network.
"""

from typing import Any

import pytest

from priocast.core.identity import NAME_LENGTH_MAX, ProcessId
from priocast.core.message import CLIENT_LENGTH_MAX
from priocast.core.protocol import OrderingOptions
from priocast.core.view import Part, View
from priocast.core.view_reason import DETAIL_LENGTH_MAX, Eviction, ViewReason
from priocast.links.frame import LinkOptions
from priocast.member import Member
from priocast.membership.datagrams import CHANNEL, frame_of, read
from priocast.membership.options import MEMBERS_MAX, MembershipOptions, hash_of_options
from priocast.membership.packets import (
    Accepted,
    Ballot,
    ClientDigest,
    Control,
    FlushPlan,
    Heartbeat,
    Install,
    OrderDigest,
    Ordering,
    Prepare,
    Promise,
    Proposal,
    Propose,
    SenderDigest,
)
from priocast.network.codec import FRAME_BYTES_MAX

MILLISECOND = 1_000_000
LARGEST = 2**53
ALL = [ProcessId(f"{number:03}{'x' * (NAME_LENGTH_MAX - 3)}") for number in range(MEMBERS_MAX)]


class Voter:
    """A scripted member: it is alive, votes for everything, and installs what is decided."""

    def __init__(self, me: ProcessId, config: int) -> None:
        self.me = me
        self._config = config
        self._view: View | None = None

    def heartbeat(self, hears: tuple[ProcessId, ...]) -> Heartbeat:
        view, others = self._view, tuple(process for process in hears if process != self.me)
        members = view.members if view else ()
        return Heartbeat(self._config, view.id if view else None, members, 0, others, (0,) * len(members))

    def answer(self, control: Control) -> Control | None:
        match control:
            case Prepare(ballot=ballot):
                received = (0,) * (len(self._view.members) if self._view else 0)
                return Promise(ballot, self._view, received, (), None, None)
            case Propose(ballot=ballot):
                return Accepted(ballot, OrderDigest(0))
            case Install(proposal=proposal):
                self._view = proposal.view
        return None


class LargeGroup:
    """Two real members, the first and the last one, among scripted ones; a step takes 10 ms."""

    def __init__(self, processes: list[ProcessId]) -> None:
        options = MembershipOptions(
            founders=len(processes), heartbeat_ms=1_000, failure_ms=5_000, slow_ms=50_000
        )
        ordering = OrderingOptions()
        config = hash_of_options(options.agreed_on("sequencer-ub", ordering))
        real = (processes[0], processes[-1])
        self.members = {me.name: Member(me, "sequencer-ub", ordering, options, LinkOptions()) for me in real}
        self.voters = {each.name: Voter(each, config) for each in processes[1:-1]}
        self.alive = tuple(processes)
        self.largest = 0
        self._now = 0

    def say_alive(self) -> None:
        for voter in self.voters.values():
            frame = frame_of(voter.heartbeat(self.alive))
            for member in self.members.values():
                member.receive(voter.me, [frame], self._now)

    def run_until_view_of(self, count: int) -> None:
        for passed in range(2_000):
            if passed % 100 == 0:
                self.say_alive()
            if all(member.view and len(member.view.members) == count for member in self.members.values()):
                return
            self._step()
        raise AssertionError("no view")

    def _step(self) -> None:
        self._now += 10 * MILLISECOND
        for name, member in self.members.items():
            if member.deadline <= self._now:
                member.tick(self._now)
            member.turn(self._now)
            for to, frames in member.frames(self._now):
                for frame in frames:
                    self._transmit(ProcessId(name), to, frame)

    def _transmit(self, sender: ProcessId, to: str, frame: Any) -> None:
        self.largest = max(self.largest, len(frame.body))
        if to in self.members:
            self.members[to].receive(sender, [frame], self._now)
        elif to in self.voters and frame.channel == CHANNEL:
            control = read(sender, frame)
            if isinstance(control, Heartbeat):
                return
            answer = self.voters[to].answer(control)
            if answer is not None:
                self.members[sender.name].receive(self.voters[to].me, [frame_of(answer)], self._now)


def test_the_largest_view_with_the_longest_names_installs_and_loses_members() -> None:
    group = LargeGroup(ALL)
    for member in group.members.values():
        for process in ALL:
            if process != member.me:
                member.reachable(process.name, 0)
    group.run_until_view_of(MEMBERS_MAX)
    failing = ALL[1:100]
    for process in failing:
        del group.voters[process.name]
    group.alive = tuple(process for process in ALL if process not in failing)
    group.run_until_view_of(MEMBERS_MAX - len(failing))
    reason = group.members[ALL[0].name].membership.view_history.recent[-1].reason
    assert reason.failed == tuple(process.name for process in failing)
    assert group.largest < FRAME_BYTES_MAX


def largest_proposal(primary: bool) -> Proposal:
    names = tuple(process.name for process in ALL)
    evicted = tuple(Eviction(name, "fault", "y" * DETAIL_LENGTH_MAX) for name in names)
    reason = ViewReason(False, names, (), (), evicted, names, "z" * 2 * NAME_LENGTH_MAX)
    view = View(2, tuple(ALL), (Part(View(1, tuple(ALL)).id, tuple(ALL)),))
    counts, ranks = (LARGEST,) * MEMBERS_MAX, tuple(range(MEMBERS_MAX))
    matrix = () if primary else ((2**32,) * MEMBERS_MAX,) * MEMBERS_MAX
    plan = FlushPlan(View(1, tuple(ALL)).id, tuple(ALL), counts, ranks, matrix)
    return Proposal(view, (plan,), Ordering("o" * NAME_LENGTH_MAX, True, "none"), reason)


def largest_digest() -> OrderDigest:
    clients = {
        f"{number:05}".ljust(CLIENT_LENGTH_MAX, "c"): ClientDigest(LARGEST, LARGEST) for number in range(1024)
    }
    levels = dict.fromkeys(range(257), LARGEST)
    senders = tuple(
        SenderDigest(ProcessId(f"{number:03}".ljust(NAME_LENGTH_MAX, "s"), LARGEST), levels, LARGEST)
        for number in range(384)
    )
    return OrderDigest(LARGEST, clients, senders)


@pytest.mark.parametrize("primary", [True, False])
def test_every_datagram_of_a_view_change_fits_into_a_frame(primary: bool) -> None:
    ballot, proposal, view = Ballot(7, ALL[0]), largest_proposal(primary), View(1, tuple(ALL))
    counts = (LARGEST,) * MEMBERS_MAX
    matrix = () if primary else ((2**32,) * MEMBERS_MAX,) * MEMBERS_MAX
    for control in (
        Heartbeat(7, view.id, tuple(ALL), 7, tuple(ALL), counts),
        Prepare(ballot, tuple(ALL)),
        Promise(ballot, view, counts, matrix, ballot, proposal),
        Propose(ballot, proposal),
        Accepted(ballot, largest_digest()),
        Install(largest_proposal(primary=True), largest_digest()),
    ):
        frame = frame_of(control)
        assert len(frame.body) <= FRAME_BYTES_MAX, f"{type(control).__name__}: {len(frame.body):,}"
        assert read(ALL[1], frame) == control

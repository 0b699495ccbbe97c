"""An epoch: open, frozen, complete; and its end is a function of the packets that count."""

import pytest

from membership.builders import A, B, C, batch, epoch, view
from priocast.core.errors import ForeignFrame, PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import Broadcast
from priocast.links.frame import Frame
from priocast.membership.epoch import Epoch, channel_of
from priocast.membership.packets import FlushPlan, FlushReply

OLD = view(A, B, C)
EVERYBODY = (A, B, C)


def plan_of(
    *counts: int, members: tuple[ProcessId, ...] = EVERYBODY, acknowledged: tuple[tuple[int, ...], ...] = ()
) -> FlushPlan:
    return FlushPlan(OLD.id, members, counts, (0, 0, 0), acknowledged)


def exchange(epochs: dict[ProcessId, Epoch], *silent: ProcessId) -> None:
    """Let the members act, and deliver their frames to all that are not silent, until nothing is left."""
    moved = True
    while moved:
        moved = False
        for me, each in epochs.items():
            if not each.frozen:
                each.act(0, may_order=True)
            for peer, link in each.links.items():
                frames, link.frames = link.frames, []
                for frame in frames:
                    if peer in epochs and peer not in silent and not epochs[peer].frozen and frame.sequence:
                        epochs[peer].receive(me, frame, 0)
                        moved = True


def three() -> dict[ProcessId, Epoch]:
    return {me: epoch(me, OLD) for me in EVERYBODY}


def names(of: Epoch, plan: FlushPlan) -> list[str]:
    """What is left to be consumed when the view ends with this plan."""
    return [f"{ordered_batch.batch}@{ordered_batch.position}" for ordered_batch in of.ending(plan)]


def test_each_view_has_a_channel_of_its_own() -> None:
    views = [view(A, B), view(A, C), view(A, B, number=2), view(B, A)]
    channels = {channel_of(each.id) for each in views}
    assert len(channels) == 3, "number and coordinator name a view"
    assert 0 not in channels


def test_frames_from_outside_the_view_are_rejected() -> None:
    with pytest.raises(PeerFault, match="of which it is not a member"):
        epoch(A, OLD).receive(ProcessId("b", 2), Frame(1, 1, 0, 0, b"x"), 0)
    with pytest.raises(ForeignFrame, match="cannot be read"):
        epoch(A, OLD).receive(B, Frame(1, 1, 0, 0, b"x"), 0)


def test_members_with_the_same_packets_end_alike() -> None:
    epochs = three()
    epochs[B].step(Broadcast(batch(B, 0, 2)), 0)
    epochs[C].step(Broadcast(batch(C, 0)), 0)
    exchange(epochs)
    received = epochs[A].stability.received[0]
    for each in epochs.values():
        each.freeze(0)
    endings = [names(each, plan_of(received, 0, 0)) for each in epochs.values()]
    assert endings[0] == endings[1] == endings[2] and len(endings[0]) == 2


def test_a_frozen_epoch_gets_missing_packets_from_others() -> None:
    epochs = three()
    epochs[B].step(Broadcast(batch(B, 0, 2)), 0)
    exchange(epochs, C)
    late = epochs[C]
    late.freeze(0)
    count = epochs[B].stability.received[0]
    plan = plan_of(count, 0, 0, members=(B, C))
    assert late.missing(plan) == (B, A, 1, count)
    late.on_flush_reply(FlushReply(OLD.id, A, 1, tuple(epochs[B].stability.bodies(0, 1, count, 1 << 20))), 0)
    epochs[B].freeze(0)
    assert late.missing(plan) is None
    assert names(late, plan) == names(epochs[B], plan) != []


def test_an_open_epoch_ignores_flush_replies() -> None:
    epochs = three()
    epochs[B].step(Broadcast(batch(B, 0)), 0)
    exchange(epochs, C)
    epochs[C].on_flush_reply(FlushReply(OLD.id, A, 1, tuple(epochs[B].stability.bodies(0, 1, 9, 1 << 20))), 0)
    assert epochs[C].stability.received == [0, 0, 0]


def test_unordered_messages_are_sent_again_by_their_sender() -> None:
    epochs = three()
    epochs[B].step(Broadcast(batch(B, 0, 2)), 0)
    exchange(epochs, A)
    for each in epochs.values():
        each.freeze(0)
    assert [str(each) for each in epochs[B].unordered()] == ["b#1/0/0+2"]
    assert epochs[C].unordered() == []


def test_a_message_of_a_member_that_stays_behind_is_kept_only_if_it_knew_the_position() -> None:
    """It may send the message again on its side of the partition, where it would get another position."""
    epochs = three()
    epochs[C].step(Broadcast(batch(C, 0)), 0)
    epochs[B].step(Broadcast(batch(B, 0)), 0)
    exchange(epochs)
    one = epochs[B]
    one.freeze(0)
    received = one.stability.received[0]
    unknown = plan_of(
        received, 0, 0, members=(A, B), acknowledged=((received, 0, 0), (received, 0, 0), (0, 0, 0))
    )
    known = plan_of(received, 0, 0, members=(A, B), acknowledged=((received, 0, 0),) * 3)
    assert {each.partition("/")[0] for each in names(one, unknown)} == {"b#1"}
    assert {each.partition("/")[0] for each in names(one, known)} == {"b#1", "c#1"}
    assert {each.partition("/")[0] for each in names(one, plan_of(received, 0, 0))} == {"b#1", "c#1"}


def test_a_frozen_epoch_sends_nothing() -> None:
    one = epoch(B, OLD)
    one.freeze(0)
    one.step(Broadcast(batch(B, 0)), 0)
    assert all(not link.frames for link in one.links.values())
    assert one.deadline is None and not one.restless

"""When an evicted member rejoins, and that a stuck application costs the others no more than once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

import pytest

import priocast
from priocast.core.view_reason import Eviction, ViewReason
from priocast.runtime.rejoining import Rejoining, RejoinPauses
from support.groups import Cluster, Reader, entered, quick, reading
from support.waiting import PATIENCE_SECONDS, run, wait_until

SECOND = 1_000_000_000
SLOW = ViewReason(evicted=(Eviction("c", "slow"),))


def pauses(*rejoin_after_seconds: float, unheard: Collection[int] = ()) -> list[float]:
    """The pauses of a member that is evicted this long after each rejoin, with the default options.

    It is to blame, except for the evictions with the indices `unheard`.
    """
    rejoin_pauses, now, found = RejoinPauses(priocast.MembershipOptions(founders=3)), 0, []
    for index, seconds in enumerate(rejoin_after_seconds):
        now += int(seconds * SECOND)
        rejoin_pauses.on_evicted(now, is_to_blame=index not in unheard)
        found.append(rejoin_pauses.pause_ns / SECOND)
        now += rejoin_pauses.pause_ns
        rejoin_pauses.on_rejoin(now)
    return found


def test_the_pause_grows_with_repeated_evictions_up_to_a_limit() -> None:
    assert pauses(5, 5, 5, 5, 5, 5, 5, 5, 5, 5) == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_member_that_was_not_evicted_for_long_rejoins_at_once() -> None:
    assert pauses(5, 5, 5, 60, 5) == [0, 1, 2, 0, 1]


def test_a_member_that_was_only_not_heard_does_not_pause_longer_and_longer() -> None:
    assert pauses(5, 5, 5, 5, 5, unheard=range(5)) == [0, 1, 1, 1, 1]
    assert pauses(5, 5, 5, 5, 5, unheard=(2, 3)) == [0, 1, 1, 1, 2], "the others still count"


def test_only_a_member_that_was_evicted_as_slow_is_on_probation() -> None:
    async def test() -> None:
        rejoining = Rejoining("c", priocast.MembershipOptions(founders=3), lambda: None)
        for reason, on_probation in (
            (SLOW, True),
            (ViewReason(failed=("c",)), False),
            (ViewReason(evicted=(Eviction("b", "slow"), Eviction("c", "fault"))), False),
        ):
            rejoining.on_evicted(reason)
            assert rejoining.on_probation == on_probation
            rejoining.cancel()

    run(test)


def test_a_member_that_waits_for_its_application_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        rejoined = asyncio.Event()
        rejoining = Rejoining("c", priocast.MembershipOptions(founders=3), rejoined.set)
        rejoining.on_evicted(SLOW)
        await wait_until(lambda: caplog.messages)
        assert not rejoined.is_set()
        rejoining.on_application_back()
        await rejoined.wait()
        (message,) = caplog.messages
        expected = "c was evicted and waits for 1 s: it rejoins when its application asks for the next event"
        assert message == expected

    run(test)


class StuckReader(Reader):
    """An application that stops in the middle of a message, until it is released."""

    def __init__(self, group: priocast.Group) -> None:
        super().__init__(group)
        self.stuck_at: int | None = 3
        self.released = asyncio.Event()

    async def read(self) -> None:
        async for event in self.group:
            self.events.append(event)
            if isinstance(event, priocast.Delivery):
                self.deliveries.append(event)
                if len(self.deliveries) == self.stuck_at:
                    await self.released.wait()


def evictions(reader: Reader) -> list[str]:
    return [str(view.reason) for view in reader.views if view.reason.evicted or view.reason.left]


async def broadcast_until(group: priocast.Group, condition: Callable[[], object]) -> None:
    broadcasting = asyncio.create_task(broadcast_for(group, PATIENCE_SECONDS))
    await wait_until(condition)
    broadcasting.cancel()


async def broadcast_for(group: priocast.Group, seconds: float) -> None:
    for number in range(int(seconds / 0.005)):
        await group.broadcast(b"%d" % number)
        await asyncio.sleep(0.005)


@asynccontextmanager
async def evicted_because_stuck() -> AsyncIterator[tuple[list[priocast.Group], list[Reader], StuckReader]]:
    """Members a, b and c, and readers of a and b; the application of c is stuck, and c was evicted for it."""
    cluster, options = Cluster("memory", "abc"), priocast.OrderingOptions(window=4)
    membership = quick(3, slow_ms=300.0)
    joinings = [cluster.join(name, membership=membership, options=options) for name in "abc"]
    async with entered(*joinings) as members, reading(*members[:2]) as readers:
        stuck = StuckReader(members[2])
        reading_task = asyncio.create_task(stuck.read())
        try:
            await broadcast_until(members[0], lambda: evictions(readers[0]))
            yield members, readers, stuck
        finally:
            reading_task.cancel()


def test_a_member_with_a_stuck_application_is_evicted_once_and_rejoins_when_the_application_is_back() -> None:
    async def test() -> None:
        async with evicted_because_stuck() as (members, readers, stuck):
            await broadcast_for(members[0], 1.5)
            assert evictions(readers[0]) == ["c was evicted (slow)"]
            assert readers[0].members == "ab"
            status = members[2].status()
            assert (status.state, status.incarnations) == ("joining", 2)
            stuck.released.set()
            await readers[0].wait_members("abc")
            await members[2].broadcast(b"back")
            await wait_until(lambda: b"back" in stuck.payloads)
            assert any(isinstance(event, priocast.Evicted) for event in stuck.events)

    run(test)


def test_an_application_that_is_stuck_again_does_not_hold_up_the_others() -> None:
    async def test() -> None:
        async with evicted_because_stuck() as (members, readers, stuck):
            stuck.released.set()
            await readers[0].wait_members("abc")
            stuck.released.clear()
            stuck.stuck_at = len(stuck.deliveries) + 3
            await broadcast_until(members[0], lambda: len(evictions(readers[0])) == 2)
            assert evictions(readers[0]) == ["c was evicted (slow)", "c left"]

    run(test)


def test_a_member_whose_application_is_stuck_can_leave() -> None:
    async def test() -> None:
        cluster, options = Cluster("memory", "ab"), priocast.OrderingOptions(window=4)
        joinings = [cluster.join(name, membership=quick(2, slow_ms=300.0), options=options) for name in "ab"]
        async with entered(*joinings) as members, reading(members[0]) as readers:
            await members[0].broadcast_many([b"x"] * 50)
            await readers[0].wait_members("a")
            await wait_until(lambda: members[1].status().incarnations == 2)
            assert evictions(readers[0]) == ["b was evicted (slow)"]
        assert not cluster.hub.networks, "both have left"

    run(test)

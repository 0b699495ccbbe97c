"""When a member gets a turn: what the application took is reported, whether or not it comes back for more."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import priocast
from priocast.links.frame import Frame
from priocast.network.memory import MemoryPort
from priocast.services.frames import SERVICE_CHANNEL
from support.groups import groups, take
from support.waiting import run, wait_until

_WINDOW = 8


@pytest.fixture
def senders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the members that sent frames, in order."""
    names: list[str] = []
    send = MemoryPort.send

    def noted(self: MemoryPort, *arguments: Any) -> None:
        names.append(self.process.name)
        send(self, *arguments)

    monkeypatch.setattr(MemoryPort, "send", noted)
    return names


async def _full_window(members: list[priocast.Group]) -> AsyncIterator[priocast.Event]:
    """The stream of b, after a window of messages, a batch each, and more that wait for it."""
    for priority in range(2 * _WINDOW):
        await members[0].broadcast(b"x", priority)
    stream = aiter(members[1])
    assert isinstance(await anext(stream), priocast.ViewChange)
    await wait_until(lambda: members[1].status().unconsumed == _WINDOW)
    return stream


def test_consumption_is_reported_while_the_application_does_not_let_the_event_loop_run(
    senders: list[str],
) -> None:
    async def test() -> None:
        async with groups("memory", 2, options=priocast.OrderingOptions(window=_WINDOW)) as members:
            stream = await _full_window(members)
            turns = members[1]._driver.turns
            senders.clear()
            for _ in range(_WINDOW):
                assert isinstance(await anext(stream), priocast.Delivery)
            assert set(senders) == {"b"}, "nothing else could run meanwhile"
            assert len(senders) == members[1]._driver.turns - turns, "a turn for each report, and no other"
            await asyncio.gather(
                *(take(member, count) for member, count in zip(members, (16, 8), strict=True))
            )

    run(test)


def test_an_application_that_does_not_come_back_has_taken_its_message(senders: list[str]) -> None:
    async def test() -> None:
        async with groups("memory", 2, options=priocast.OrderingOptions(window=_WINDOW)) as members:
            stream = await _full_window(members)
            assert isinstance(await anext(stream), priocast.Delivery)
            await asyncio.sleep(0)
            assert members[1].status().position == 1
            await asyncio.gather(
                *(take(member, count) for member, count in zip(members, (16, 15), strict=True))
            )

    run(test)


def test_a_member_that_leaves_has_answered_before_the_others_hear_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also those whose answers could have waited: the other recipients of a message."""
    sent: list[tuple[str, bool]] = []
    send = MemoryPort.send

    async def test() -> None:
        async with groups("memory", 3) as (a, b, _):

            def noted(self: MemoryPort, peer: str, frames: list[Frame]) -> None:
                if self.process == b.me:
                    leaving = b._driver.member.membership.trigger.leaving
                    sent.extend((peer, leaving) for frame in frames if frame.channel == SERVICE_CHANNEL)
                send(self, peer, frames)

            monkeypatch.setattr(MemoryPort, "send", noted)
            receipt = a.send_nowait(b"x", quality=priocast.RELIABLE)
            async for event in b:
                if isinstance(event, priocast.ServiceDelivery):
                    break
            assert ("c", False) not in sent, "the application has the message before all are answered"
            await b._driver.close(5)
            assert set(sent) == {("a", False), ("c", False)}
            assert "b" in (await receipt).answered

    run(test)


def test_a_report_that_nobody_waits_for_is_no_turn(senders: list[str]) -> None:
    """A quarter of the window is worth a frame, a single message is not."""

    async def test() -> None:
        async with groups("memory", 2, options=priocast.OrderingOptions(window=_WINDOW)) as members:
            stream = await _full_window(members)
            driver = members[1]._driver
            turns = driver.turns
            assert isinstance(await anext(stream), priocast.Delivery)
            senders.clear()
            driver._at_end_of_iteration()
            assert (driver.turns, senders, members[1].status().position) == (turns, [], 1)
            await asyncio.gather(
                *(take(member, count) for member, count in zip(members, (16, 15), strict=True))
            )

    run(test)

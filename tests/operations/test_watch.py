"""The watch: what happens to a group is in the log, once."""

import asyncio
import logging

import pytest

import priocast
from operations.nodes import nodes
from priocast.operations import watch as watch_module
from priocast.operations.watch import Watch
from priocast.runtime.group import Group
from priocast.runtime.node import Node
from support.waiting import run, wait_until


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def field(record: logging.LogRecord, name: str) -> object:
    return vars(record)[name]


async def cut_off(node: Node) -> None:
    await node.network.close()


def test_views_are_told_once_with_their_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(3, "tickets") as (a, _, c):
            watch = Watch(a)
            watch.look()
            watch.look()
            assert told(caplog) == ["in view 1 of a, b, c: the group was founded"]
            await cut_off(c)
            await wait_until(lambda: len(Group(a.groups["tickets"]).view.members) == 2)
            watch.look()
            record = caplog.records[-1]
            assert record.getMessage() == "in view 2 of a, b: c failed"
            assert (field(record, "group"), field(record, "view"), field(record, "reason")) == (
                "tickets",
                2,
                "c failed",
            )
            assert field(record, "took_ms") > 0  # type: ignore[operator]
            assert len(caplog.records) == 2

    caplog.set_level(logging.INFO, "priocast")
    run(test)


def test_a_minority_is_told_to_be_suspended_and_to_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(3, "tickets") as (a, b, c):
            watch = Watch(a)
            await cut_off(b)
            await cut_off(c)
            await wait_until(lambda: Group(a.groups["tickets"]).status().state == "suspended")
            watch.look()
            watch.look()
            assert told(caplog)[1:] == [
                "suspended: no majority of the group can be reached; b, c cannot be heard"
            ]
            assert caplog.records[-1].levelno == logging.ERROR
            await b.network.start()
            await wait_until(lambda: Group(a.groups["tickets"]).status().state == "active")
            watch.look()
            assert "goes on: a majority of the group can be reached again" in told(caplog)

    caplog.set_level(logging.INFO, "priocast")
    run(test)


def test_who_is_put_out_and_comes_back_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(3, "tickets") as (a, _, c):
            watch = Watch(c)
            watch.look()
            await cut_off(c)
            await wait_until(lambda: len(Group(a.groups["tickets"]).view.members) == 2)
            await c.network.start()
            await wait_until(lambda: len(Group(a.groups["tickets"]).view.members) == 3)
            await wait_until(lambda: c.groups["tickets"].member.view is not None)
            watch.look()
            assert "put out of the group: the group went on without c: c failed" in told(caplog)
            assert "back in view 3 of a, b, c: c joined" in told(caplog)

    caplog.set_level(logging.INFO, "priocast")
    run(test)


def test_whom_the_order_waits_for_is_told_ever_less_often(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with nodes(1, "tickets", options=priocast.OrderingOptions(window=1)) as (a,):
            group, watch = Group(a.groups["tickets"]), Watch(a)
            watching = asyncio.create_task(watch.run())
            await group.broadcast_many([b"x"] * 5)
            await wait_until(lambda: len(caplog.records) == 2)
            watching.cancel()
            first, second = caplog.records
            assert first.getMessage().startswith("blocked on credit from a for ")
            assert field(first, "peer") == "a"
            assert field(second, "seconds") >= 2 * field(first, "seconds")  # type: ignore[operator]

    monkeypatch.setattr(watch_module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(watch_module, "SLOW_SECONDS", 0.1)
    caplog.set_level(logging.WARNING, "priocast")
    run(test)


def test_what_a_member_refused_is_told_with_its_count(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(1, "tickets") as (a,):
            watch = Watch(a)
            watch.look()
            for _ in range(3):
                a.groups["tickets"].member.reject("earlier life")
            watch.look()
            assert told(caplog) == []
            watch._followed[a.groups["tickets"]]._rejections_logged_at = 0
            watch.look()
            watch.look()
            assert told(caplog) == ["refused: earlier life (3 times)"]

    caplog.set_level(logging.WARNING, "priocast")
    run(test)


def test_an_order_that_a_group_chose_by_itself_is_told_with_its_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with nodes(1, "tickets", order="auto") as (node,):
            watch, driver = Watch(node), node.groups["tickets"]
            for advice in ("starts with x", "x suits the load", "x stays", "changes from x to y", "y suits"):
                driver.advice = advice
                watch.look()
                watch.look()
            assert told(caplog)[1:] == ["starts with x", "changes from x to y"]

    caplog.set_level(logging.INFO, "priocast")
    run(test)

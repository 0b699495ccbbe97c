"""The log of a group: every event is logged once."""

import asyncio
import logging

import pytest

import priocast
from priocast.runtime.admin import group_log
from priocast.runtime.admin.group_log import GroupLogger
from priocast.runtime.group import Group
from priocast.runtime.node import Node
from support.groups import reading
from support.nodes import nodes
from support.waiting import run, wait_until


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def field(record: logging.LogRecord, name: str) -> object:
    return vars(record)[name]


async def cut_off(node: Node) -> None:
    await node.network.close()


def test_view_is_logged_once_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(3, "tickets") as (a, _, c):
            logger = GroupLogger(a)
            logger.poll()
            logger.poll()
            assert messages(caplog) == ["in view 1 of a, b, c: the group was founded"]
            await cut_off(c)
            await wait_until(lambda: len(Group(a.groups["tickets"]).view.members) == 2)
            logger.poll()
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


def test_suspension_and_resumption_of_a_minority(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(3, "tickets") as (a, b, c):
            logger = GroupLogger(a)
            await cut_off(b)
            await cut_off(c)
            await wait_until(lambda: Group(a.groups["tickets"]).status().state == "suspended")
            logger.poll()
            logger.poll()
            assert messages(caplog)[1:] == ["suspended: no quorum can be reached; no heartbeats from b, c"]
            assert caplog.records[-1].levelno == logging.ERROR
            await b.network.start()
            await wait_until(lambda: Group(a.groups["tickets"]).status().state == "active")
            logger.poll()
            assert "resumed: a quorum can be reached again" in messages(caplog)

    caplog.set_level(logging.INFO, "priocast")
    run(test)


def test_eviction_and_rejoin(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(3, "tickets") as (a, _, c), reading(Group(c.groups["tickets"])):
            logger = GroupLogger(c)
            logger.poll()
            await cut_off(c)
            await wait_until(lambda: len(Group(a.groups["tickets"]).view.members) == 2)
            await c.network.start()
            await wait_until(lambda: len(Group(a.groups["tickets"]).view.members) == 3)
            await wait_until(lambda: c.groups["tickets"].member.view is not None)
            logger.poll()
            assert any(message.startswith("evicted: ") for message in messages(caplog))
            assert "rejoined view 3 of a, b, c: c joined" in messages(caplog)

    caplog.set_level(logging.INFO, "priocast")
    run(test)


def test_bottleneck_is_logged_at_doubling_intervals(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with nodes(1, "tickets", options=priocast.OrderingOptions(window=1)) as (a,):
            group, logger = Group(a.groups["tickets"]), GroupLogger(a)
            polling = asyncio.create_task(logger.run())
            await group.broadcast_many([b"x"] * 5)
            await wait_until(lambda: len(caplog.records) == 2)
            polling.cancel()
            first, second = caplog.records
            assert first.getMessage().startswith("the order has waited 0.")
            assert field(first, "bottleneck") == "a"
            assert field(second, "seconds") >= 2 * field(first, "seconds")  # type: ignore[operator]

    monkeypatch.setattr(group_log, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(group_log, "SLOW_SECONDS", 0.1)
    caplog.set_level(logging.WARNING, "priocast")
    run(test)


def test_rejections_are_logged_with_their_count(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(1, "tickets") as (a,):
            logger = GroupLogger(a)
            logger.poll()
            for _ in range(3):
                a.groups["tickets"].member.reject("earlier incarnation")
            logger.poll()
            assert messages(caplog) == []
            logger._logs[a.groups["tickets"]]._rejections_logged_at = 0
            logger.poll()
            logger.poll()
            assert messages(caplog) == ["rejected: earlier incarnation (3 times)"]

    caplog.set_level(logging.WARNING, "priocast")
    run(test)


def test_automatic_choice_of_an_order_is_logged_with_its_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with nodes(1, "tickets", order="auto") as (node,):
            logger, driver = GroupLogger(node), node.groups["tickets"]
            for advice in ("starts with x", "x suits the load", "x stays", "changes from x to y", "y suits"):
                driver.advice = advice
                logger.poll()
                logger.poll()
            assert messages(caplog)[1:] == ["starts with x", "changes from x to y"]

    caplog.set_level(logging.INFO, "priocast")
    run(test)


def test_a_full_disk_and_its_end_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(1, "tickets") as (a,):
            logger = GroupLogger(a)
            logger.poll()
            caplog.clear()
            incarnations = a.groups["tickets"].storage.incarnations
            for incarnations.problem in ("", "no room", "no room", "", ""):
                logger.poll()
            assert messages(caplog) == ["the member continues, but no room", "all records are written again"]
            assert Group(a.groups["tickets"]).status().storage_problems == []

    caplog.set_level(logging.INFO, "priocast")
    run(test)

"""Stalls in status, metrics, probe and log: a delivery that waits has a reason and is not an error."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

import priocast
from priocast.cli.probe import _page
from priocast.operations.node_probe import Probed, problems_of
from priocast.runtime.admin import group_log
from priocast.runtime.admin.group_log import GroupLogger
from priocast.runtime.admin.metrics import exposition
from priocast.runtime.admin.node_status import node_status
from priocast.runtime.group import Group
from priocast.runtime.node import Node
from priocast.runtime.status import StallStatus
from support.nodes import nodes
from support.waiting import run, wait_until


def stalls_of(node: Node) -> StallStatus:
    return Group(node.groups["tickets"]).status().stalls


@asynccontextmanager
async def stalled(order: str, seconds: int = 1) -> AsyncIterator[tuple[Node, Node]]:
    """Members whose routine messages wait for an urgent one, because the answer of a third member is missing.

    After `seconds` the third member counts as failed, and the stall ends.
    """
    options = priocast.MembershipOptions(founders=1, heartbeat_ms=20, failure_ms=1_000 * seconds)
    async with nodes(3, "tickets", order=order, membership=options) as (a, b, c):
        await Group(a.groups["tickets"]).broadcast_many([b"x"] * 5)
        await wait_until(lambda: Group(b.groups["tickets"]).status().unconsumed == 5)
        await c.network.close()
        await Group(a.groups["tickets"]).broadcast(b"y", priocast.URGENT)
        await wait_until(lambda: bool(stalls_of(b).reason))
        yield a, b


def metrics(node: Node) -> dict[str, float]:
    return {
        sample.name.removeprefix("priocast_"): sample.value
        for family in text_string_to_metric_families(exposition(node).decode())
        for sample in family.samples
        if "stall" in sample.name
    }


@pytest.mark.parametrize("order", ["reorder", "reorder-locks"])
def test_stall_has_a_reason_and_is_counted_across_views(order: str) -> None:
    async def test() -> None:
        async with stalled(order) as (_, b):
            before = stalls_of(b)
            assert "urgent" in before.reason
            assert before.lasting_ms > 0
            assert before.count >= 1
            await wait_until(lambda: len(Group(b.groups["tickets"]).view.members) == 2)
            after = stalls_of(b)
            assert (after.reason, after.lasting_ms) == ("", 0)
            assert after.count >= before.count
            assert after.total_ms >= after.longest_ms > before.lasting_ms

    run(test)


def test_metrics_of_the_current_and_of_all_stalls() -> None:
    async def test() -> None:
        async with stalled("reorder") as (_, b):
            found = metrics(b)
            assert found["stalls_total"] >= 1
            assert 0 < found["stall_seconds"] <= found["longest_stall_seconds"]
            assert found["longest_stall_seconds"] <= found["stalled_seconds_total"]
            # While the view changes, the stall goes on and its reason is gone.
            await wait_until(lambda: metrics(b)["stall_seconds"] == 0)
            assert metrics(b)["stalled_seconds_total"] > found["stalled_seconds_total"]

    run(test)


def test_probe_shows_a_stall_but_reports_no_problem() -> None:
    async def test() -> None:
        async with stalled("reorder") as (_, b):
            probed = [Probed(address="127.0.0.1:1", status=node_status(b))]
            assert problems_of(probed) == []
            console = Console(width=200, file=StringIO())
            with console.capture() as captured:
                console.print(_page(probed))
            lines = [line.strip() for line in captured.get().splitlines()]
            (row,) = [row for row, line in enumerate(lines) if line.startswith("stalls")]
            assert f"{stalls_of(b).reason}, for " in lines[row]
            assert "1 (longest " in lines[row + 1]

    run(test)


def test_long_stall_is_logged_at_doubling_intervals(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with stalled("reorder", seconds=10) as (_, b):
            logger = GroupLogger(b)
            logger.poll()
            assert caplog.records == []
            await wait_until(lambda: stalls_of(b).lasting_ms > 500)
            logger.poll()
            logger.poll()
            (record,) = caplog.records
            assert record.getMessage().startswith("delivery has stalled for ")
            assert "urgent" in vars(record)["reason"]
            assert record.getMessage().endswith(vars(record)["reason"])
            await wait_until(lambda: stalls_of(b).lasting_ms > 1000 * 2.1 * vars(record)["seconds"] + 50)
            logger.poll()
            assert len(caplog.records) == 2

    monkeypatch.setattr(group_log, "SLOW_SECONDS", 0.5)
    caplog.set_level(logging.WARNING, "priocast")
    run(test)

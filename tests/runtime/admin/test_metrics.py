"""The metrics agree with the status of the groups."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

import priocast
from priocast.runtime.admin.metrics import exposition
from priocast.runtime.driver import Driver
from priocast.runtime.group import Group
from priocast.runtime.node import Node
from support.nodes import nodes
from support.waiting import PATIENCE_SECONDS, run, wait_until

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(node: Node) -> Samples:
    """Every sample by its name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(exposition(node).decode())
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[f"priocast_{name}", frozenset(({"group": "tickets", "member": "a"} | labels).items())]


def driver_of(node: Node, group: str = "tickets") -> Driver:
    return node.groups[group]


def test_metrics_of_an_idle_group() -> None:
    async def test() -> None:
        async with nodes(3, "tickets", "audit") as (a, *_):
            found = samples(a)
            assert value(found, "view_number") == 1
            assert value(found, "view_number", group="audit") == 1
            assert value(found, "view_members") == 3
            assert value(found, "views_total") == value(found, "incarnations_total") == 1
            assert value(found, "state", state="active") == 1
            assert value(found, "state", state="suspended") == 0
            assert value(found, "suspicion", peer="b") < 1
            assert value(found, "retransmissions_total", peer="c") == 0
            assert value(found, "last_view_change_age_seconds") > 0
            assert not [key for key in found if "state_transfer" in key[0]]

    run(test)


def test_messages_by_quality_of_service() -> None:
    async def test() -> None:
        async with nodes(2, "tickets") as (a, b):
            group = Group(driver_of(a))
            await group.send([b"x", b"y"], quality=priocast.RELIABLE)
            await group.send(b"z", quality=priocast.ATOMIC, to=["b"])
            found, there = samples(a), samples(b)
            assert value(found, "quality_sent_total", quality="reliable") == 1
            assert value(found, "quality_accepted_total", quality="atomic") == 1
            assert value(found, "quality_rejected_total", quality="atomic") == 0
            assert value(found, "quality_retransmissions_total", quality="reliable") >= 0
            assert value(found, "transmitted_messages") == 0
            assert value(found, "held_units") == 2 and value(there, "held_units", member="b") >= 2
            assert value(found, "inaccessible_periods_total") == 0
            assert value(found, "inaccessible_periods_exceeded_total") == 0
            assert value(found, "inaccessible_seconds_total") == 0
            assert not [key for key in found if "clock_precision" in key[0]]
            async for event in group:
                if isinstance(event, priocast.ServiceDelivery) and event.index == 1:
                    break
            assert value(samples(a), "quality_delivered_total", quality="reliable") == 2

    run(test)


def test_queues_by_priority_and_the_bottleneck() -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=2)
        async with nodes(2, "tickets", options=options) as (a, b):
            for node in (a, b):
                await Group(driver_of(node)).broadcast_many([b"x"] * 20, priocast.ROUTINE)
            await wait_until(lambda: Group(driver_of(a)).status().bottleneck_ms > 20)
            await Group(driver_of(a)).broadcast(b"y", priocast.URGENT)
            await wait_until(lambda: len(Group(driver_of(a)).status().queues) == 2)
            found = samples(a)
            assert value(found, "queue_messages", priority="96") > 20
            assert value(found, "queue_messages", priority="224") == 1
            assert value(found, "queue_wait_seconds", priority="96") > 0.01
            assert value(found, "backlog_messages") > 30
            assert value(found, "unconsumed_messages") == 2
            assert sum(value(found, "bottleneck", peer=peer) for peer in "ab") == 1

    run(test)


def test_rejections_are_counted_by_reason() -> None:
    async def test() -> None:
        async with nodes(1, "tickets", "audit") as (a,):
            driver_of(a).member.reject("earlier incarnation")
            a.network.rejections["malformed content"] += 3
            found = samples(a)
            assert value(found, "rejections_total", reason="earlier incarnation") == 1
            network = {
                key: count for key, count in found.items() if key[0] == "priocast_network_rejections_total"
            }
            assert network == {
                (
                    "priocast_network_rejections_total",
                    frozenset({("node", "a"), ("reason", "malformed content")}),
                ): 3
            }

    run(test)


def test_node_without_groups_has_no_samples() -> None:
    async def test() -> None:
        async with nodes(1) as (a,):
            assert samples(a) == {}

    run(test)


def test_messages_by_priority_and_direction_and_their_times() -> None:
    async def test() -> None:
        async with nodes(2, "tickets") as (a, b):
            here, there = Group(driver_of(a)), Group(driver_of(b))
            await here.broadcast_many([b"12345678"] * 3, priocast.URGENT)
            for group in (here, there):
                async for event in group:
                    if isinstance(event, priocast.Delivery) and event.position == 2:
                        break
            await wait_until(lambda: driver_of(a).member.stream.position == 3)
            await wait_until(lambda: driver_of(b).member.stream.position == 3)
            found, other = samples(a), samples(b)
            urgent = str(priocast.URGENT)
            assert value(found, "messages_total", priority=urgent, direction="broadcast") == 3
            assert value(found, "messages_total", priority=urgent, direction="delivered") == 3
            assert value(found, "message_bytes_total", priority=urgent, direction="delivered") >= 3 * 8
            assert value(found, "delivery_seconds_count", priority=urgent) == 3
            assert value(found, "delivery_seconds_bucket", priority=urgent, le="+Inf") == 3
            assert 0 < value(found, "delivery_seconds_sum", priority=urgent) < PATIENCE_SECONDS * 3
            assert value(found, "view_change_seconds_count") == value(found, "views_total") == 1
            assert not [key for key in other if key[0].startswith("priocast_delivery_seconds")]
            assert value(other, "messages_total", member="b", priority=urgent, direction="delivered") == 3

    run(test)


def test_every_metric_of_the_dashboard_is_exported() -> None:
    dashboard = Path(__file__).parents[3] / "deploy" / "grafana-dashboard.json"
    named = set(re.findall(r"priocast_\w+", dashboard.read_text()))
    assert len(named) > 10

    async def test() -> None:
        async with nodes(1, "tickets") as (node,):
            text = exposition(node).decode()
        families = set(re.findall(r"# TYPE (\w+)", text))
        assert {name.removesuffix("_bucket") for name in named} <= families

    run(test)

"""Metrics: what Prometheus reads is what the groups' status says."""

from prometheus_client.parser import text_string_to_metric_families

import priocast
from operations.nodes import nodes
from priocast.operations.metrics import exposition
from priocast.runtime.driver import Driver
from priocast.runtime.group import Group
from priocast.runtime.node import Node
from support.waiting import run, wait_until

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


def test_a_group_at_rest() -> None:
    async def test() -> None:
        async with nodes(3, "tickets", "audit") as (a, *_):
            found = samples(a)
            assert value(found, "view_number") == 1
            assert value(found, "view_number", group="audit") == 1
            assert value(found, "view_members") == 3
            assert value(found, "views_total") == value(found, "lives_total") == 1
            assert value(found, "state", state="in the group") == 1
            assert value(found, "state", state="suspended") == 0
            assert value(found, "suspicion", peer="b") < 1
            assert value(found, "retransmissions_total", peer="c") == 0
            assert value(found, "last_view_change_age_seconds") > 0
            assert not [key for key in found if "state_transfer" in key[0]]

    run(test)


def test_what_waits_is_told_by_priority_and_whom_the_order_waits_for() -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=2)
        async with nodes(2, "tickets", options=options) as (a, b):
            for node in (a, b):
                await Group(driver_of(node)).broadcast_many([b"x"] * 20, priocast.ROUTINE)
            await wait_until(lambda: Group(driver_of(a)).status().blocked_ms > 20)
            await Group(driver_of(a)).broadcast(b"y", priocast.URGENT)
            await wait_until(lambda: len(Group(driver_of(a)).status().queues) == 2)
            found = samples(a)
            assert value(found, "queue_messages", priority="96") > 20
            assert value(found, "queue_messages", priority="224") == 1
            assert value(found, "queue_wait_seconds", priority="96") > 0.01
            assert value(found, "backlog_messages") > 30
            assert value(found, "unconsumed_messages") == 2
            assert sum(value(found, "blocked_on", peer=peer) for peer in "ab") == 1

    run(test)


def test_refusals_are_counted_by_reason_those_of_the_network_once() -> None:
    async def test() -> None:
        async with nodes(1, "tickets", "audit") as (a,):
            driver_of(a).member.reject("earlier life")
            a.network.rejections["malformed content"] += 3
            found = samples(a)
            assert value(found, "refusals_total", reason="earlier life") == 1
            network = {
                key: count for key, count in found.items() if key[0] == "priocast_network_refusals_total"
            }
            assert network == {
                (
                    "priocast_network_refusals_total",
                    frozenset({("node", "a"), ("reason", "malformed content")}),
                ): 3
            }

    run(test)


def test_a_node_without_groups_has_no_samples() -> None:
    async def test() -> None:
        async with nodes(1) as (a,):
            assert samples(a) == {}

    run(test)

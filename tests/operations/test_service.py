"""Nodes as an operator runs them: real processes, from files, with TLS; killed, restarted and stopped."""

import asyncio
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from operations.processes import Cluster, CommandProcess, cluster
from priocast.operations.probe import probe_all
from support.command import priocast
from support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.processes


def probe(made: Cluster, names: str) -> tuple[int, dict[str, Any]]:
    """What `priocast probe` says of these members, and its exit code."""
    result = priocast("probe", *(made.admin[name] for name in names), "--json")
    assert result.stderr == ""
    return result.returncode, json.loads(result.stdout)


def wait_status(admin: str, condition: Callable[[list[dict[str, Any]]], bool]) -> None:
    """Wait until a node says so of its groups."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        [probed] = asyncio.run(probe_all([admin]))
        assert probed.status is not None
        if condition(msgspec.to_builtins(probed.status.groups)):
            return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def payloads(printed: list[dict[str, Any]], group: str) -> list[str]:
    return [told["payload"] for told in printed if told.get("group") == group and "payload" in told]


def test_three_nodes_live_through_a_failure_a_restart_a_pause_and_an_orderly_end(tmp_path: Path) -> None:
    with cluster(tmp_path, "abc", "tickets", "audit") as made:
        a, b, c = (made.start(name) for name in "abc")
        for node in (a, b, c):
            node.wait_printed(group="tickets", view=1)
            node.wait_printed(group="audit", view=1)
        a.type("tickets: one", "audit: urgent: two", "nowhere: lost", "tickets: 999: lost")
        for node in (a, b, c):
            node.wait_printed(group="tickets", payload="one", priority=96)
            node.wait_printed(group="audit", payload="two", priority=224)
        code, document = probe(made, "abc")
        assert (code, document["problems"]) == (0, [])

        c.kill()
        told = a.wait_logged(group="tickets", view=2)
        assert (told["reason"], told["level"]) == ("c failed", "info")
        b.wait_printed(group="tickets", view=2, reason="c failed")
        code, document = probe(made, "abc")
        assert code == 1
        assert [problem.partition(" does ")[0] for problem in document["problems"]] == [made.admin["c"]]
        for node in document["nodes"][:2]:
            [tickets] = [group for group in node["status"]["groups"] if group["group"] == "tickets"]
            assert (tickets["view"][0], tickets["last_change_reason"]) == (2, "c failed")

        c = made.start("c")
        c.wait_printed(group="tickets", reason="c joined")
        c.wait_printed(group="audit", reason="c joined")
        b.send_signal(signal.SIGSTOP)
        a.wait_printed(group="tickets", reason="b failed")
        b.send_signal(signal.SIGCONT)
        b.wait_printed(group="tickets", stopped="the group went on without b: b failed")
        b.wait_printed(group="tickets", reason="b joined")
        b.wait_logged(group="tickets", event="put out of the group: the group went on without b: b failed")
        assert b.wait_logged(group="tickets", reason="b joined")["event"].startswith("back in view ")

        c.type(*(f"tickets: {number}" for number in range(200)))
        c.wait_printed(group="tickets", payload="0")
        assert c.terminate() == 0
        sent = len(payloads(c.printed(), "tickets"))
        a.wait_printed(group="tickets", reason="c left")
        assert payloads(a.printed(), "tickets") == ["one", *map(str, range(sent))]

        assert b.terminate() == 0
        assert a.terminate() == 0
        assert payloads(b.printed(), "tickets") == payloads(a.printed(), "tickets")
        assert [told["event"] for told in a.logged() if told["logger"] == "priocast.node"] == [
            "a waits for the groups to come about",
            "SIGTERM: ending in good order; a second one ends at once",
            "left the group",
            "left the group",
        ]


def test_a_signal_before_the_group_came_about_ends_at_once(tmp_path: Path) -> None:
    with cluster(tmp_path, "ab", "tickets") as made:
        a = made.start("a")
        a.wait_logged(event="a waits for the groups to come about")
        code, document = probe(made, "a")
        assert code == 1
        assert document["problems"][0].endswith("is joining")
        assert a.terminate() == 0
        assert a.wait_logged(event="ended before the group came about")


def without_a_majority(made: Cluster) -> CommandProcess:
    """The second member of two, whose first member is killed, with a message that cannot be ordered."""
    a, b = (made.start(name) for name in "ab")
    a.wait_printed(view=1)
    b.wait_printed(view=1)
    a.kill()
    suspended = b.wait_logged(level="error")
    assert suspended["event"] == "suspended: no majority of the group can be reached; a cannot be heard"
    b.type("never ordered")
    wait_status(made.admin["b"], lambda groups: groups[0]["backlog"] == 1)
    return b


def test_without_a_majority_nothing_can_be_flushed_and_it_is_said_so(tmp_path: Path) -> None:
    with cluster(tmp_path, "ab", "tickets", shutdown_seconds=0.5) as made:
        b = without_a_majority(made)
        code, document = probe(made, "b")
        assert code == 1
        assert document["problems"][0].endswith("is suspended")
        assert b.terminate() == 1
        lost = b.logged()[-1]["event"]
        assert lost.startswith("ends before it could leave in good order: 1 messages wait at b for a place")


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with cluster(tmp_path, "ab", "tickets", shutdown_seconds=60) as made:
        b = without_a_majority(made)
        b.send_signal(signal.SIGINT)
        b.wait_logged(event="SIGINT: ending in good order; a second one ends at once")
        b.send_signal(signal.SIGINT)
        assert b.wait_end(PATIENCE_SECONDS) == -signal.SIGINT

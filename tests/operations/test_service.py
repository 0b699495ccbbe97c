"""Nodes as an operator runs them: processes with configuration files and TLS; killed, restarted, stopped."""

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
from priocast.network.keys import Authority
from priocast.network.revocation import revoke_certificates
from priocast.operations.node_probe import probe_all
from support.command import priocast
from support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.processes


def probe(made: Cluster, names: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the output of `priocast probe` for these members."""
    result = priocast("probe", *(made.admin[name] for name in names), "--json")
    assert result.stderr == ""
    return result.returncode, json.loads(result.stdout)


def wait_status(admin: str, condition: Callable[[list[dict[str, Any]]], bool]) -> None:
    """Wait until the status of a node's groups meets a condition."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        [probed] = asyncio.run(probe_all([admin]))
        assert probed.status is not None
        if condition(msgspec.to_builtins(probed.status.groups)):
            return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def payloads(printed: list[dict[str, Any]], group: str) -> list[str]:
    return [event["payload"] for event in printed if event.get("group") == group and "payload" in event]


def test_failure_restart_pause_and_graceful_shutdown_of_three_nodes(tmp_path: Path) -> None:
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
        record = a.wait_logged(group="tickets", view=2)
        assert (record["reason"], record["level"]) == ("c failed", "info")
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
        b.wait_printed(group="tickets", reason="b joined")
        [evicted] = [
            event["evicted"] for event in b.printed() if event["group"] == "tickets" and "evicted" in event
        ]
        assert "b failed" in evicted
        b.wait_logged(group="tickets", event=f"evicted: {evicted}", reason=evicted)
        assert b.wait_logged(group="tickets", reason="b joined")["event"].startswith("rejoined view ")

        c.type(*(f"tickets: {number}" for number in range(200)))
        c.wait_printed(group="tickets", payload="0")
        assert c.terminate() == 0
        sent = len(payloads(c.printed(), "tickets"))
        a.wait_printed(group="tickets", reason="c left")
        assert payloads(a.printed(), "tickets") == ["one", *map(str, range(sent))]

        assert b.terminate() == 0
        assert a.terminate() == 0
        assert payloads(b.printed(), "tickets") == payloads(a.printed(), "tickets")
        assert [record["event"] for record in a.logged() if record["logger"] == "priocast.node"] == [
            "a is joining its groups",
            "SIGTERM: leaving the groups; a second signal exits at once",
            "left the group",
            "left the group",
        ]


def test_signal_while_joining_ends_at_once(tmp_path: Path) -> None:
    with cluster(tmp_path, "ab", "tickets") as made:
        a = made.start("a")
        a.wait_logged(event="a is joining its groups")
        code, document = probe(made, "a")
        assert code == 1
        assert document["problems"][0].endswith("is joining")
        assert a.terminate() == 0
        assert a.wait_logged(event="stopped before joining the group")


def node_without_quorum(made: Cluster) -> CommandProcess:
    """One of two members after the other is killed, with a message that cannot be ordered."""
    a, b = (made.start(name) for name in "ab")
    a.wait_printed(view=1)
    b.wait_printed(view=1)
    a.kill()
    suspended = b.wait_logged(level="error")
    assert suspended["event"] == "suspended: no quorum can be reached; no heartbeats from a"
    b.type("never ordered")
    wait_status(made.admin["b"], lambda groups: groups[0]["backlog"] == 1)
    return b


def test_unordered_messages_are_reported_at_shutdown(tmp_path: Path) -> None:
    with cluster(tmp_path, "ab", "tickets", shutdown_seconds=0.5) as made:
        b = node_without_quorum(made)
        code, document = probe(made, "b")
        assert code == 1
        assert document["problems"][0].endswith("is suspended")
        assert b.terminate() == 1
        assert b.logged()[-1]["event"].startswith("leaving with unordered messages: 1 messages")


def test_second_signal_ends_at_once(tmp_path: Path) -> None:
    with cluster(tmp_path, "ab", "tickets", shutdown_seconds=60) as made:
        b = node_without_quorum(made)
        b.send_signal(signal.SIGINT)
        b.wait_logged(event="SIGINT: leaving the groups; a second signal exits at once")
        b.send_signal(signal.SIGINT)
        assert b.wait_end(PATIENCE_SECONDS) == -signal.SIGINT


def test_a_hangup_signal_reads_the_keys_again(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority.crt", tmp_path / "authority.key")
    with cluster(tmp_path, "abc", "tickets") as made:
        revoked = tmp_path / "revoked.crl"
        revoke_certificates(revoked, authority, [])
        for name in "ab":
            config = tmp_path / f"{name}.toml"
            config.write_text(
                config.read_text().replace("[node.admin]", f'revoked = "{revoked.name}"\n[node.admin]')
            )
        a, b, c = (made.start(name) for name in "abc")
        for node in (a, b, c):
            node.wait_printed(view=1)
        revoked.write_text("nonsense")
        a.send_signal(signal.SIGHUP)
        assert "the keys stay as they were" in a.wait_logged(level="error")["event"]
        revoked.unlink()
        revoke_certificates(revoked, authority, [tmp_path / "c.crt"])
        for node in (a, b):
            node.send_signal(signal.SIGHUP)
            node.wait_logged(event="SIGHUP: read the keys again")
            node.wait_printed(reason="c failed")
            node.wait_logged(reason="revoked certificate")
        a.type("without c")
        b.wait_printed(payload="without c")

"""A peer that is heard and acknowledges nothing: it is reported by everything before it is evicted."""

import logging

import msgspec
import pytest

import priocast
from priocast.cli.probe import _unacknowledged
from priocast.links.frame import Frame
from priocast.operations.node_probe import Probed, problems_of
from priocast.runtime.admin.group_log import GroupLogger
from priocast.runtime.admin.metrics import exposition
from priocast.runtime.admin.node_status import node_status
from priocast.runtime.group import Group
from priocast.runtime.node import Node
from support.nodes import nodes
from support.waiting import run, wait_until

OPTIONS = priocast.MembershipOptions(founders=3, heartbeat_ms=20, failure_ms=1_000, slow_ms=3_000)


def acknowledge_nothing(node: Node) -> None:
    """From now on, let a node send its frames without acknowledgements."""
    port = node.groups["tickets"]._port
    assert port is not None
    send = port.send

    def without(peer: str, frames: list[Frame]) -> None:
        kept = [
            msgspec.structs.replace(frame, acknowledged=0, selective=0) if frame.channel else frame
            for frame in frames
        ]
        send(peer, kept)

    port.send = without  # type: ignore[method-assign]


def test_a_peer_that_acknowledges_nothing_is_reported_then_evicted(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with nodes(3, "tickets", membership=OPTIONS) as (a, _, c):
            logger = GroupLogger(a)
            group = Group(a.groups["tickets"])
            acknowledge_nothing(c)
            await group.broadcast(b"anything")
            await wait_until(lambda: any(peer.unacknowledged_ms for peer in group.status().peers))
            logger.poll()
            logger.poll()
            status = node_status(a)
            [problem] = problems_of([Probed(address="here", status=status)])
            assert "c#" in problem and "has acknowledged nothing for" in problem
            assert _unacknowledged(status.groups[0]).startswith("[red]c, for ")
            assert b'unacknowledged_seconds{group="tickets",member="a",peer="c"}' in exposition(a)
            await wait_until(lambda: group.view is not None and len(group.view.members) == 2)
            assert "c was evicted (unacknowledged)" in group.status().last_change_reason
        said = [record.getMessage() for record in caplog.records if "acknowledged" in record.getMessage()]
        assert len(said) == 1 and said[0].startswith("c is heard, but has acknowledged nothing for ")

    caplog.set_level(logging.WARNING, "priocast")
    run(test)

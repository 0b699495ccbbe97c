"""`priocast orders` lists the protocols; `priocast change-order` changes that of a running group."""

import json

import pytest
from typer.testing import CliRunner

from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.protocols import LAYERS, PROTOCOLS
from priocast.testing.addresses import free_addresses
from support.command import priocast, start
from support.waiting import PATIENCE_SECONDS


def test_every_protocol_and_layer_is_listed_with_a_description() -> None:
    result = CliRunner().invoke(app, ["orders", "--json"], catch_exceptions=False)
    listed = {each["order"]: each for each in json.loads(result.stdout)}
    assert list(listed) == [*PROTOCOLS, *(f"{layer}/..." for layer in LAYERS)]
    assert listed["sequencer-ub"] == {
        "order": "sequencer-ub",
        "class": "Fixed sequencer, unicast-broadcast",
        "priorities_act": "sequencing",
        "how": "members send to the sequencer, which numbers and broadcasts.",
    }
    assert listed["time-parts/..."]["class"] == "Layer over any of the above"
    assert all(all(each.values()) for each in listed.values())


def test_protocols_are_listed_in_a_table() -> None:
    result = CliRunner().invoke(app, ["orders"], catch_exceptions=False)
    assert result.exit_code == 0
    for name in (*PROTOCOLS, *LAYERS):
        assert name in result.stdout


@pytest.mark.processes
def test_order_of_a_running_node_is_changed() -> None:
    listen, admin = map(str, free_addresses(2))
    node = start(
        "node", "tickets", "--member", "a", "--listen", listen, "--admin", admin, "--json", "--part-ms", "1",
    )  # fmt: skip
    try:
        assert node.stdin is not None
        assert node.stdout is not None
        assert json.loads(node.stdout.readline())["view"] == 1
        result = priocast("change-order", admin, "tickets", "time-parts/sequencer-ub", "--starvation", "none")
        assert "is ordered by time-parts/sequencer-ub, prioritised, since view 2" in result.stdout
        assert "to time-parts/sequencer-ub" in json.loads(node.stdout.readline())["reason"]
        result = priocast(
            "change-order", admin, "tickets", "time-parts/sequencer-ub", "--starvation", "ageing:9ms"
        )
        assert "prioritised, since view 3" in result.stdout
        assert json.loads(node.stdout.readline())["view"] == 3
        node.stdin.write("hello\n")
        node.stdin.flush()
        assert json.loads(node.stdout.readline())["payload"] == "hello"
    finally:
        node.terminate()
        node.communicate(timeout=PATIENCE_SECONDS)


def test_no_reply_from_the_address() -> None:
    [unused] = free_addresses(1)
    with pytest.raises(PriocastError, match="no node replies"):
        app(["change-order", str(unused), "tickets", "sequencer-ub"], standalone_mode=False)

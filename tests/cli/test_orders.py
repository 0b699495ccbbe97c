"""`priocast orders` and `priocast change-order`: what there is, and another one for a group that runs."""

import json

import pytest
from typer.testing import CliRunner

from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.protocols import LAYERS, PROTOCOLS
from priocast.testing.addresses import free_addresses
from support.command import priocast, start
from support.waiting import PATIENCE_SECONDS


def test_every_protocol_and_layer_is_listed_with_what_it_is() -> None:
    result = CliRunner().invoke(app, ["orders", "--json"], catch_exceptions=False)
    listed = {each["order"]: each for each in json.loads(result.stdout)}
    assert list(listed) == [*PROTOCOLS, *(f"{layer}/..." for layer in LAYERS)]
    assert listed["sequencer-ub"] == {
        "order": "sequencer-ub",
        "class": "Fixed sequencer, unicast-broadcast",
        "priorities_act": "sequencing",
        "how": "members send to the sequencer, which numbers and broadcasts.",
    }
    assert listed["time-parts/..."]["class"] == "Layer over any of these"
    assert all(all(each.values()) for each in listed.values())


def test_a_person_reads_a_table() -> None:
    result = CliRunner().invoke(app, ["orders"], catch_exceptions=False)
    assert result.exit_code == 0
    for name in (*PROTOCOLS, *LAYERS):
        assert name in result.stdout


@pytest.mark.processes
def test_the_order_of_a_running_node_is_changed() -> None:
    listen, admin = map(str, free_addresses(2))
    node = start(
        "node", "tickets", "--member", "a", "--listen", listen, "--admin", admin, "--json", "--part-ms", "1",
    )  # fmt: skip
    try:
        assert node.stdin is not None
        assert node.stdout is not None
        assert json.loads(node.stdout.readline())["view"] == 1
        result = priocast("change-order", admin, "tickets", "time-parts/sequencer-ub", "--starvation", "none")
        assert "is ordered by time-parts/sequencer-ub, prioritised, from view 2 on" in result.stdout
        assert "changes to time-parts/sequencer-ub" in json.loads(node.stdout.readline())["reason"]
        node.stdin.write("hello\n")
        node.stdin.flush()
        assert json.loads(node.stdout.readline())["payload"] == "hello"
    finally:
        node.terminate()
        node.communicate(timeout=PATIENCE_SECONDS)


def test_a_node_that_is_not_there_cannot_be_asked() -> None:
    [nobody] = free_addresses(1)
    with pytest.raises(PriocastError, match="nobody answers"):
        app(["change-order", str(nobody), "tickets", "sequencer-ub"], standalone_mode=False)

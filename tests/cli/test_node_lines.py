"""The lines that `priocast node` prints: one for each event, whatever others put into it."""

import json

import pytest

from priocast.cli.node_lines import event_as_json, event_as_text
from priocast.core.events import Delivery, Evicted, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import Message, Scope
from priocast.core.view import View
from priocast.core.view_reason import Eviction, ViewReason

A = ProcessId("a")
FORGED = "x\n     7  b        224  stop selling\x1b[1A\u202e"


def delivery(payload: bytes, client: str = "") -> Delivery:
    return Delivery(Message(A, 96, 0, 96, payload, Scope(client=client)), 6)


@pytest.mark.parametrize(
    "event",
    [
        delivery(FORGED.encode()),
        delivery(b"\xff\x1b\n\x9b"),
        delivery(b"hello", client=f"{FORGED}#1"),
        ViewChange(View(2, (A,)), 7, ViewReason(evicted=(Eviction("b", "fault", FORGED),)), "sequencer-ub"),
        Evicted(ViewReason(evicted=(Eviction("a", "fault", FORGED),))),
    ],
)
def test_an_event_is_one_line_of_printable_text(event: Delivery | ViewChange | Evicted) -> None:
    for line in (event_as_text("", event), event_as_text("tickets", event), event_as_json("", event)):
        assert len(line.splitlines()) == 1
        assert line.isprintable()
    assert isinstance(json.loads(event_as_json("", event)), dict)


def test_json_keeps_the_payload_as_it_is() -> None:
    assert json.loads(event_as_json("", delivery(FORGED.encode())))["payload"] == FORGED

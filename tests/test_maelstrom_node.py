"""The node for Maelstrom: three processes that speak its protocol are one linearizable store."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Condition
from typing import Any

import pytest

from priocast.testing.addresses import free_addresses
from priocast.testing.child_process import ChildProcess

NODE = Path(__file__).parent.parent / "examples" / "maelstrom_node.py"
NAMES = ["n1", "n2", "n3"]
PATIENCE_SECONDS = 60.0
LINES_MAX = 80


class MaelstromClient:
    """Sends requests to nodes and waits for the reply to each."""

    def __init__(self, nodes: dict[str, ChildProcess]) -> None:
        self._nodes = nodes
        self._number = 0

    def send(self, node: str, kind: str, **fields: object) -> int:
        self._number += 1
        body = {"type": kind, "msg_id": self._number, **fields}
        self._nodes[node].write_line(json.dumps({"src": "c1", "dest": node, "body": body}).encode())
        return self._number

    def reply(self, node: str, number: int) -> dict[str, Any]:
        found: list[dict[str, Any]] = []

        def replied() -> bool:
            messages = map(json.loads, self._nodes[node].output)
            found.extend(each["body"] for each in messages if each["body"]["in_reply_to"] == number)
            return bool(found)

        self._nodes[node].wait(replied, PATIENCE_SECONDS, f"a reply to {number}")
        return found[0]

    def ask(self, node: str, kind: str, **fields: object) -> dict[str, Any]:
        reply = self.reply(node, self.send(node, kind, **fields))
        return {name: value for name, value in reply.items() if name not in ("in_reply_to", "text")}


@pytest.mark.processes
def test_three_nodes_are_one_store() -> None:
    host = free_addresses(1)[0].host
    changed = Condition()
    with ExitStack() as stack:
        nodes = {
            name: stack.enter_context(ChildProcess(name, [sys.executable, str(NODE), host], changed=changed))
            for name in NAMES
        }
        client = MaelstromClient(nodes)
        sent = {name: client.send(name, "init", node_id=name, node_ids=NAMES) for name in NAMES}
        assert [client.reply(name, number)["type"] for name, number in sent.items()] == ["init_ok"] * 3
        assert client.ask("n1", "read", key=7) == {"type": "error", "code": 20}
        assert client.ask("n1", "write", key=7, value=1) == {"type": "write_ok"}
        assert client.ask("n2", "read", key=7) == {"type": "read_ok", "value": 1}
        assert client.ask("n2", "cas", key=7, **{"from": 1, "to": 2}) == {"type": "cas_ok"}
        assert client.ask("n3", "cas", key=7, **{"from": 1, "to": 3}) == {"type": "error", "code": 22}
        assert client.ask("n3", "read", key=7) == {"type": "read_ok", "value": 2}
        assert client.ask("n3", "enqueue", value=7) == {"type": "error", "code": 10}
        for node in nodes.values():
            node.close_input()
        assert [node.wait_end(PATIENCE_SECONDS) for node in nodes.values()] == [0] * 3


def test_it_is_short_and_uses_public_names_only() -> None:
    program = NODE.read_text()
    assert len(program.splitlines()) <= LINES_MAX
    assert [line for line in program.splitlines() if "import" in line and "priocast" in line] == [
        "import priocast"
    ]

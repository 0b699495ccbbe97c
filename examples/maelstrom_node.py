#!/usr/bin/env python3
"""A node for Maelstrom's workload lin-kv: messages are lines of JSON on standard input and output.

    maelstrom test -w lin-kv --bin examples/maelstrom_node.py --node-count 3

Nodes talk to each other on the loopback network, on the host that is the first argument.
"""

import asyncio
import json
import sys
from typing import Any

import priocast

HOST = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1"
CODES = {"KeyError": 20, "ValueError": 22}


class Store(priocast.ReplicatedObject):
    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    @priocast.replicated
    def read(self, key: str) -> int:
        return self.values[key]

    @priocast.replicated
    def write(self, key: str, value: int) -> None:
        self.values[key] = value

    @priocast.replicated
    def cas(self, key: str, expected: int, value: int) -> None:
        if self.values[key] != expected:
            raise ValueError(f"expected {expected}, found {self.values[key]}")
        self.values[key] = value


async def answer(store: Store, body: dict[str, Any]) -> dict[str, Any]:
    key = json.dumps(body.get("key"))
    try:
        match body["type"]:
            case "read":
                return {"type": "read_ok", "value": await store.read(key)}
            case "write":
                await store.write(key, body["value"])
            case "cas":
                await store.cas(key, body["from"], body["to"])
            case unknown:
                return {"type": "error", "code": 10, "text": f"{unknown} is not supported"}
    except priocast.CommandFailed as error:
        return {"type": "error", "code": CODES[error.kind], "text": str(error)}
    except priocast.PriocastError as error:  # it may still be executed
        return {"type": "error", "code": 0, "text": str(error)}
    return {"type": f"{body['type']}_ok"}


def reply(request: dict[str, Any], body: dict[str, Any]) -> None:
    body["in_reply_to"] = request["body"]["msg_id"]
    print(json.dumps({"src": request["dest"], "dest": request["src"], "body": body}), flush=True)


async def serve(store: Store, request: dict[str, Any]) -> None:
    reply(request, await answer(store, request["body"]))


async def main() -> None:
    loop = asyncio.get_running_loop()
    first = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    me, nodes = first["body"]["node_id"], first["body"]["node_ids"]
    addresses = {name: f"{HOST}:{port}" for port, name in enumerate(nodes, 7600)}
    peers = [address for name, address in addresses.items() if name != me]
    async with priocast.replicate("kv", Store(), member=me, listen=addresses[me], peers=peers) as store:
        reply(first, {"type": "init_ok"})
        async with asyncio.TaskGroup() as requests:
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                requests.create_task(serve(store, json.loads(line)))


asyncio.run(main())

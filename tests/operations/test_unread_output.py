"""A node whose output nobody reads costs the other nodes one wait of `slow_ms`, however long it lasts."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from operations.processes import LOGGED, CommandProcess, running
from priocast.testing.addresses import free_addresses
from support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.processes

SLOW_MS = 3_000


def configure(directory: Path) -> list[str]:
    addresses = dict(zip("abc", map(str, free_addresses(3)), strict=True))
    peers = "".join(f'{name} = "{address}"\n' for name, address in addresses.items())
    for name, address in addresses.items():
        (directory / f"{name}.toml").write_text(
            f'[node]\nname = "{name}"\nlisten = "{address}"\n[peers]\n{peers}'
            f'[[group]]\nname = "tickets"\nslow_ms = {SLOW_MS}\nfailure_ms = {SLOW_MS}\n'
        )
    return [str(directory / f"{name}.toml") for name in addresses]


def reasons(node: CommandProcess) -> list[str]:
    """Why views changed that concern c."""
    changes = [str(event["reason"]) for event in node.printed() if "view" in event and event["view"] > 1]
    return [change for change in changes if change.startswith("c ")]


def type_for(node: CommandProcess, seconds: float) -> None:
    """Broadcast a long line every millisecond, to fill pipe and queue of the node that is not read."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        node.type("x" * 8192)
        time.sleep(0.001)


def test_a_node_whose_output_is_not_read_is_evicted_once_and_rejoins_when_it_is_read(tmp_path: Path) -> None:
    config_a, config_b, config_c = configure(tmp_path)
    command = [sys.executable, "-m", "priocast", "node", "--config", config_c, *LOGGED]
    with (
        running("a", "node", "--config", config_a, *LOGGED) as a,
        running("b", "node", "--config", config_b, *LOGGED) as b,
        (tmp_path / "c.log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log) as unread,
    ):
        try:
            a.wait_printed(view=1)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not reasons(a) and time.monotonic() < deadline:
                type_for(a, 0.5)
            type_for(a, 2 * SLOW_MS / 1000)
            assert reasons(a) == ["c was evicted (slow)"]
            a.type("still there")
            b.wait_printed(payload="still there")
            assert unread.stdout is not None
            deadline = time.monotonic() + PATIENCE_SECONDS
            while "c joined" not in reasons(a) and time.monotonic() < deadline:
                os.read(unread.stdout.fileno(), 65536)
            assert "c joined" in reasons(a)
        finally:
            unread.kill()

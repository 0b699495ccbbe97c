"""`priocast probe`: the page for people and the document for scripts."""

import asyncio
import json
import socket
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from operations.processes import running
from priocast.cli.main import app
from priocast.cli.probe import _page
from priocast.core.errors import DeadlineExceeded, InvalidAddress, InvalidOption
from priocast.operations.node_probe import Probed
from priocast.runtime.admin.node_status import node_status
from priocast.testing.addresses import free_addresses
from support.command import command_error, priocast
from support.nodes import nodes

pytestmark = pytest.mark.processes


def test_one_node_as_table_as_json_and_repeatedly(tmp_path: Path) -> None:
    listen, admin = map(str, free_addresses(2))
    arguments = ("node", "tickets", "--member", "a", "--listen", listen, "--admin", admin)
    with running("node", *arguments) as node:
        node.type("hello")
        node.wait_lines(2)
        members = command_error("probe", listen)
        assert f"{listen}: not an admin address: the reply is not HTTP" in members
        shown = priocast("probe", admin)
        assert (shown.returncode, shown.stderr) == (0, "")
        lines = [line.split() for line in shown.stdout.splitlines()]
        assert ["group", "tickets"] in lines
        assert ["state", "active"] in lines
        assert ["view", "1:", "a"] in lines
        assert ["position", "1"] in lines
        assert ["no", "problems"] in lines
        document = json.loads(priocast("probe", admin, "--json").stdout)
        assert (document["healthy"], document["nodes"][0]["status"]["groups"][0]["position"]) == (True, 1)
        with running("watch", "probe", admin, "--json", "--watch", "0.1") as watching:
            assert [json.loads(line)["healthy"] for line in watching.wait_lines(3)][:3] == [True] * 3


def test_nothing_that_a_node_sends_acts_on_the_terminal() -> None:
    async def page() -> str:
        async with nodes(1, "tickets") as (node,):
            status = node_status(node)
        forged = msgspec.structs.replace(
            status.groups[0],
            member="[red]\x1b[2Ja#1",
            last_change_reason="b failed\n[blink]x\u202e",
            rejections={"a\x1b]0;x\x07": 3},
            bottleneck="\x9b[b]",
            state="joining",
        )
        probed = Probed(address="here", status=msgspec.structs.replace(status, groups=[forged]))
        console = Console(width=200, file=StringIO(), force_terminal=False)
        with console.capture() as captured:
            console.print(_page([probed]))
        return captured.get()

    printed = asyncio.run(page())
    assert all(line.isprintable() for line in printed.split("\n"))
    for part in (r"[red]\x1b[2Ja", r"b failed\n[blink]x\u202e", r"a\x1b]0;x\x07: 3"):
        assert part in printed


def test_no_node_replies() -> None:
    [unused] = free_addresses(1)
    message = command_error("probe", str(unused))
    assert f"no node replies ({unused}: Connection refused): check that the nodes are running" in message
    assert "listen under [node.admin]" in message
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_port = silent.getsockname()[1]
        with pytest.raises(DeadlineExceeded, match=r"no reply within 0\.3 s"):
            app(["probe", f"127.0.0.1:{silent_port}", "--timeout", "0.3"], standalone_mode=False)
    for option in ("--timeout", "--watch"):
        with pytest.raises(InvalidOption, match=f"{option} is nan: must be above 0"):
            app(["probe", str(unused), option, "nan"], standalone_mode=False)
    with pytest.raises(InvalidAddress, match="write host:port"):
        app(["probe", "9401"], standalone_mode=False)


def test_help_has_examples() -> None:
    result = CliRunner().invoke(app, ["probe", "--help"])
    assert result.exit_code == 0
    assert "[node.admin]" in result.stdout

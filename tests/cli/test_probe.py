"""`priocast probe`: what a person sees, and what a script gets."""

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from operations.processes import running
from priocast.cli.main import app
from priocast.core.errors import DeadlineExceeded, InvalidAddress, InvalidOption
from priocast.testing.addresses import free_addresses
from support.command import priocast, refusal

pytestmark = pytest.mark.processes


def test_a_node_by_itself_in_words_in_json_and_again_and_again(tmp_path: Path) -> None:
    listen, admin = map(str, free_addresses(2))
    arguments = ("node", "tickets", "--member", "a", "--listen", listen, "--admin", admin)
    with running("node", *arguments) as node:
        node.type("hello")
        node.wait_lines(2)
        members = refusal("probe", listen)
        assert f"{listen}: this is no node's admin address: its answer is not HTTP" in members
        shown = priocast("probe", admin)
        assert (shown.returncode, shown.stderr) == (0, "")
        lines = [line.split() for line in shown.stdout.splitlines()]
        assert ["group", "tickets"] in lines
        assert ["state", "in", "the", "group"] in lines
        assert ["view", "1:", "a"] in lines
        assert ["position", "1"] in lines
        assert ["all", "is", "well"] in lines
        document = json.loads(priocast("probe", admin, "--json").stdout)
        assert (document["well"], document["nodes"][0]["status"]["groups"][0]["position"]) == (True, 1)
        with running("watch", "probe", admin, "--json", "--watch", "0.1") as watching:
            assert [json.loads(line)["well"] for line in watching.wait_lines(3)][:3] == [True] * 3


def test_nobody_answers() -> None:
    [nobody] = free_addresses(1)
    said = refusal("probe", str(nobody))
    assert f"nobody answers ({nobody}: Connection refused): are the nodes running" in said
    assert "listen under [node.admin]" in said
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_port = silent.getsockname()[1]
        with pytest.raises(DeadlineExceeded, match=r"no answer within 0\.3 s"):
            app(["probe", f"127.0.0.1:{silent_port}", "--timeout", "0.3"], standalone_mode=False)
    for option in ("--timeout", "--watch"):
        with pytest.raises(InvalidOption, match=f"{option} is nan: it must be above 0"):
            app(["probe", str(nobody), option, "nan"], standalone_mode=False)
    with pytest.raises(InvalidAddress, match="write host:port"):
        app(["probe", "9401"], standalone_mode=False)


def test_help_has_examples() -> None:
    result = CliRunner().invoke(app, ["probe", "--help"])
    assert result.exit_code == 0
    assert "[node.admin]" in result.stdout

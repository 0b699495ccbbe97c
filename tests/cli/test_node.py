"""`priocast node`: real processes on the loopback address."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from operations.processes import running
from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.network.keys import make_authority, make_member_certificate
from priocast.testing.addresses import free_addresses
from priocast.trace.run_directory import find_segments, read_manifest
from support.command import command_error, priocast, start
from support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.processes


def arguments(index: int, addresses: list[str], *more: str) -> list[str]:
    peers = [address for address in addresses if address != addresses[index]]
    options = [option for peer in peers for option in ("--peer", peer)]
    return ["node", "tickets", "--member", "abc"[index], "--listen", addresses[index], *options, *more]


def test_three_processes_print_the_same_events(tmp_path: Path) -> None:
    addresses = [str(address) for address in free_addresses(3)]
    more = ("--count", "6", "--json", "--trace", str(tmp_path / "run"), "--log-level", "error")
    processes = [start(*arguments(index, addresses, *more)) for index in range(3)]
    typed = [
        "two seats\nurgent: stop selling\n",
        "7: later: much later\n",
        "a: b\n\nnot a priority: but text\n224: x\n",
    ]
    printed = []
    for process, lines in zip(processes, typed, strict=True):
        assert process.stdin is not None
        process.stdin.write(lines)
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, err) == (0, "")
        printed.append([json.loads(line) for line in out.splitlines()])
    assert printed[0] == printed[1] == printed[2]
    view, *deliveries = printed[0]
    assert [member.split("#")[0] for member in view["members"]] == ["a", "b", "c"]
    assert sorted((each["priority"], each["payload"]) for each in deliveries) == [
        (7, "later: much later"),
        (96, "a: b"),
        (96, "not a priority: but text"),
        (96, "two seats"),
        (224, "stop selling"),
        (224, "x"),
    ]
    assert read_manifest(tmp_path / "run").order == "sequencer-ub"
    assert len(find_segments(tmp_path / "run").group_events) == 3


def test_events_as_text() -> None:
    [address] = [str(address) for address in free_addresses(1)]
    result = priocast(*arguments(0, [address], "--count", "1"), typed="urgent: hello\n")
    assert result.returncode == 0, result.stderr
    view, line = result.stdout.splitlines()
    assert view == "view 1: a (the group was founded)"
    assert line.split() == ["0", "a", "224", "hello"]


def rejection(*arguments: str) -> str:
    """The error of a command that is rejected before anything is started, without a process of its own."""
    with pytest.raises(PriocastError) as error:
        app([*arguments], standalone_mode=False)
    return str(error.value)


def test_invalid_options_are_rejected() -> None:
    valid = ("node", "tickets", "--member", "a", "--listen", "127.0.0.1:7401")
    assert "'paxos'" in rejection(*valid, "--order", "paxos")
    for name in ("agreement-skeen", "count-parts/agreement-skeen"):
        assert "partitionable" in rejection(*valid, "--order", name, "--policy", "partitionable")
    for option in ("--burst", "--bucket", "--part-ms", "--part-count"):
        name = option.removeprefix("--").replace("-", "_")
        assert f"{name} is 0" in rejection(*valid, option, "0")
    adapting = (*valid, "--order", "adaptive", "--adaptation")
    assert "adaptation is 'never': there is no such policy" in rejection(*adapting, "never")
    assert "host:port" in rejection("node", "tickets", "--member", "a", "--listen", "7401")
    assert "'a b'" in rejection("node", "tickets", "--member", "a b", *valid[4:])
    assert "'sometimes'" in rejection(*valid, "--starvation", "sometimes")
    assert "member and listen missing: give GROUP, --member NAME" in rejection("node", "tickets")
    assert "policy is 'anarchy'" in rejection(*valid, "--policy", "anarchy")
    assert "delivery is 'never'" in rejection(*valid, "--delivery", "never")
    assert "TLS needs all of" in rejection(*valid, "--tls-key", "a.key")
    assert "can be reached from other machines" in rejection(*valid, "--admin", "0.0.0.0:9401")
    assert "--group is 'audit'" in rejection(*valid, "--group", "audit")
    assert "the log level is 'loud'" in rejection(*valid, "--log-level", "loud")
    assert "founders is 0" in rejection(*valid, "--founders", "0")
    for seconds in ("nan", "inf", "-1"):
        assert f"start_seconds is {seconds}" in rejection(*valid, "--start-seconds", seconds)


def test_unwritable_directories_are_rejected(tmp_path: Path) -> None:
    valid = ("node", "tickets", "--member", "a", "--listen", "127.0.0.1:7401")
    file = tmp_path / "file"
    file.touch()
    for option in ("--trace", "--state-directory"):
        assert rejection(*valid, option, str(file)) == f"{option}: {file} is a file: choose a directory"
        assert f"because {file} is a file" in rejection(*valid, option, str(file / "deep"))


def test_timeout_of_the_first_view_is_one_line() -> None:
    one, other = map(str, free_addresses(2))
    valid = ("node", "tickets", "--member", "a", "--listen", one, "--peer", other)
    waiting = command_error(*valid, "--start-seconds", "0.2", in_process=False)
    assert "timed out after 0.2 s: no view of group 'tickets' contains a (heard: nobody; missing: " in waiting


def test_invalid_line_is_reported_and_the_next_one_is_broadcast() -> None:
    [address] = [str(address) for address in free_addresses(1)]
    result = priocast(*arguments(0, [address], "--count", "1"), typed="999: x\nhello\n")
    assert result.returncode == 0
    assert result.stderr.strip() == "error: '999: x' has the priority 999: it must be between 0 and 255"
    assert result.stdout.splitlines()[1].split() == ["0", "a", "96", "hello"]


def test_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        valid = ("node", "g", "--member", "a", "--listen", address)
        message = command_error(*valid, "--trace", str(tmp_path / "run"), in_process=False)
    assert f"cannot listen on {address}" in message
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_configuration_is_checked_and_summarised(tmp_path: Path) -> None:
    path = tmp_path / "group.toml"
    example = CliRunner().invoke(app, ["node", "--example-config"])
    assert example.exit_code == 0
    path.write_text(example.stdout)
    checked = CliRunner().invoke(app, ["node", "--config", str(path), "--check"])
    assert (checked.exit_code, checked.stderr) == (0, "")
    assert checked.stdout.splitlines()[0] == "a listens on 127.0.0.1:7401"
    assert f"  state directory: {tmp_path / 'state'}" in checked.stdout
    assert not (tmp_path / "state").exists()
    assert "--group is 'audit'" in rejection("node", "--config", str(path), "--check", "--group", "audit")
    message = rejection("node", "--config", str(path), "--check", "--member", "b")
    assert "--member cannot be combined with --config: set it in the file" in message


def test_all_problems_of_a_configuration_are_reported_and_nothing_is_started(tmp_path: Path) -> None:
    path = tmp_path / "group.toml"
    path.write_text('[node]\nname = "a"\nlisten = "7401"\n[[group]]\nname = "tickets"\nspeed = 1\n')
    result = priocast("node", "--config", str(path))
    assert (result.returncode, result.stdout) == (2, "")
    first, *problems = result.stderr.splitlines()
    assert first == f"error: {path} has 2 problems; nothing was started:"
    assert [problem.split(":")[0].strip() for problem in problems] == ["node.listen", "group.tickets.speed"]


def test_safe_delivery_and_a_member_that_joins_later(tmp_path: Path) -> None:
    one, other = map(str, free_addresses(2))
    more = ("--delivery", "safe", "--json")
    first = ("node", "g", "--member", "a", "--listen", one, "--peer", other, "--founders", "1", *more)
    second = ("node", "g", "--member", "b", "--listen", other, "--peer", one, *more)
    with running("a", *first) as founder, running("b", *second) as joiner:
        founder.wait_printed(view=1, reason="the group was founded")
        founder.wait_printed(view=2, reason="b joined")
        joiner.type("hello")
        at_founder = founder.wait_printed(sender="b", payload="hello")
        assert joiner.wait_printed(sender="b", payload="hello") == at_founder
        assert at_founder["position"] == 0


def test_help_has_examples() -> None:
    result = CliRunner().invoke(app, ["node", "--help"])
    assert result.exit_code == 0
    assert "three terminals on one machine" in result.stdout


def test_output_that_cannot_be_written_is_an_error() -> None:
    [address] = map(str, free_addresses(1))
    command = [sys.executable, "-m", "priocast", *arguments(0, [address], "--log-level", "error")]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            command, input="two seats\n", stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            timeout=PATIENCE_SECONDS,
        )  # fmt: skip
    assert result.returncode == 1
    assert re.fullmatch(
        r"error: lines not written to standard output: \d+ \(No space left on device\)\n", result.stderr
    )


def test_line_over_the_limit_is_refused_whole() -> None:
    [address] = map(str, free_addresses(1))
    typed = f"first\n{'x' * 3_000_000}\nlast\n"
    result = priocast(*arguments(0, [address], "--count", "2", "--json"), typed=typed)
    assert result.returncode == 0
    assert [json.loads(line).get("payload") for line in result.stdout.splitlines()] == [None, "first", "last"]
    assert (
        result.stderr
        == "error: a line of 3,000,000 bytes was not broadcast: at most 2,097,152 bytes are read\n"
    )


def test_check_finds_a_group_that_the_certificate_does_not_admit_to(tmp_path: Path) -> None:
    made = make_member_certificate(tmp_path, make_authority(tmp_path), "a", ["tickets"])
    files = [
        "--tls-certificate", str(made.certificate), "--tls-key", str(made.key),
        "--tls-authority", str(made.authority), "--check",
    ]  # fmt: skip
    checked = CliRunner().invoke(app, arguments(0, ["127.0.0.1:7401"], *files))
    assert checked.exit_code == 0 and "TCP with TLS" in checked.stdout
    unknown = arguments(0, ["127.0.0.1:7401"], *files)
    unknown[1] = "audit"
    assert "does not allow a to join audit" in rejection(*unknown)


def test_lines_are_sent_with_a_quality_of_service() -> None:
    addresses = [str(address) for address in free_addresses(2)]
    with (
        running("a", *arguments(0, addresses, "--quality", "atomic", "--to", "b")) as a,
        running("b", *arguments(1, addresses, "--json", "--quality", "at-least:9")) as b,
    ):
        b.wait_printed(view=1)
        a.type("urgent: hello")
        event = b.wait_printed(quality="atomic")
        assert (event["payload"], event["priority"], event["sender"]) == ("hello", 224, "a")
        b.type("too much")
        problem = b"error: at-least:9 asks for more than the 2 recipients\n"
        b.wait(lambda: problem in b.errors, PATIENCE_SECONDS, "an error")
    assert "--to needs --quality" in rejection(*arguments(0, addresses, "--to", "b"))
    assert "'fast' is not a quality" in rejection(*arguments(0, addresses, "--quality", "fast"))

"""`priocast node`: real processes on the loopback address."""

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from operations.processes import running
from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.study.processes import free_addresses
from priocast.trace.run_directory import find_segments, read_manifest
from support.command import priocast, refusal, start
from support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.processes


def arguments(index: int, addresses: list[str], *more: str) -> list[str]:
    peers = [address for address in addresses if address != addresses[index]]
    options = [option for peer in peers for option in ("--peer", peer)]
    return ["node", "tickets", "--member", "abc"[index], "--listen", addresses[index], *options, *more]


def test_three_processes_print_the_same_lines(tmp_path: Path) -> None:
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


def test_text_for_people() -> None:
    [address] = [str(address) for address in free_addresses(1)]
    result = priocast(*arguments(0, [address], "--count", "1"), typed="urgent: hello\n")
    assert result.returncode == 0, result.stderr
    view, line = result.stdout.splitlines()
    assert view == "view 1: a (the group was founded)"
    assert line.split() == ["0", "a", "224", "hello"]


def refused(*arguments: str) -> str:
    """What the command says when it refuses before anything is started: without a process for each."""
    with pytest.raises(PriocastError) as error:
        app([*arguments], standalone_mode=False)
    return str(error.value)


def test_what_cannot_be_is_refused() -> None:
    good = ("node", "tickets", "--member", "a", "--listen", "127.0.0.1:7401")
    assert "no protocol 'paxos'; there are: agreement-" in refused(*good, "--order", "paxos")
    for name in ("agreement-skeen", "count-parts/agreement-skeen"):
        assert "not for partitionable" in refused(*good, "--order", name, "--policy", "partitionable")
    for option in ("--burst", "--bucket", "--part-ms", "--part-count"):
        name = option.removeprefix("--").replace("-", "_")
        assert f"{name} is 0" in refused(*good, option, "0")
    assert "write host:port" in refused("node", "tickets", "--member", "a", "--listen", "7401")
    assert "cannot be the name of a member" in refused("node", "tickets", "--member", "a b", *good[4:])
    assert "is not a starvation policy" in refused(*good, "--starvation", "sometimes")
    assert "member and listen missing: give GROUP, --member NAME" in refused("node", "tickets")
    assert "policy is 'anarchy'" in refused(*good, "--policy", "anarchy")
    assert "delivery is 'never'" in refused(*good, "--delivery", "never")
    assert "TLS needs all of" in refused(*good, "--tls-key", "a.key")
    assert "can be reached from other machines" in refused(*good, "--admin", "0.0.0.0:9401")
    assert "--group is 'audit'" in refused(*good, "--group", "audit")
    assert "log level 'loud' is not known" in refused(*good, "--log-level", "loud")
    assert "founders is 0: a group has 1 to 64" in refused(*good, "--founders", "0")
    for seconds in ("nan", "inf", "-1"):
        assert f"start_seconds is {seconds}" in refused(*good, "--start-seconds", seconds)


def test_directories_that_cannot_be_written_to_are_refused(tmp_path: Path) -> None:
    good = ("node", "tickets", "--member", "a", "--listen", "127.0.0.1:7401")
    file = tmp_path / "file"
    file.touch()
    for option in ("--trace", "--state-directory"):
        assert refused(*good, option, str(file)) == f"{option}: {file} is a file: choose a directory"
        assert f"because {file} is a file" in refused(*good, option, str(file / "deep"))


def test_whom_nobody_joins_says_so_in_one_line() -> None:
    one, other = map(str, free_addresses(2))
    waiting = refusal(
        "node", "tickets", "--member", "a", "--listen", one, "--peer", other, "--start-seconds", "0.2"
    )
    assert "the group 'tickets' did not come about, or did not take a in, within 0.2 s" in waiting


def test_a_line_that_cannot_be_sent_is_named_and_the_next_one_goes_on() -> None:
    [address] = [str(address) for address in free_addresses(1)]
    result = priocast(*arguments(0, [address], "--count", "1"), typed="999: x\nhello\n")
    assert result.returncode == 0
    assert result.stderr.strip() == "error: 999 in '999: x' is not a priority from 0 to 255"
    assert result.stdout.splitlines()[1].split() == ["0", "a", "96", "hello"]


def test_a_port_that_another_program_has_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        said = refusal("node", "g", "--member", "a", "--listen", address, "--trace", str(tmp_path / "run"))
    assert f"cannot listen on {address}" in said
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_a_file_is_checked_and_told_in_words(tmp_path: Path) -> None:
    path = tmp_path / "group.toml"
    example = CliRunner().invoke(app, ["node", "--example-config"])
    assert example.exit_code == 0
    path.write_text(example.stdout)
    checked = CliRunner().invoke(app, ["node", "--config", str(path), "--check"])
    assert (checked.exit_code, checked.stderr) == (0, "")
    assert checked.stdout.splitlines()[0] == "a listens on 127.0.0.1:7401"
    assert f"  state directory: {tmp_path / 'state'}" in checked.stdout
    assert not (tmp_path / "state").exists()
    beside = refused("node", "--config", str(path), "--check", "--member", "b")
    assert "member is given beside --config: say it in the file" in beside


def test_all_that_is_wrong_with_a_file_is_told_and_nothing_is_started(tmp_path: Path) -> None:
    path = tmp_path / "group.toml"
    path.write_text('[node]\nname = "a"\nlisten = "7401"\n[[group]]\nname = "tickets"\nspeed = 1\n')
    result = priocast("node", "--config", str(path))
    assert (result.returncode, result.stdout) == (2, "")
    first, *problems = result.stderr.splitlines()
    assert first == f"error: {path} has 2 problems; nothing was started:"
    assert [problem.split(":")[0].strip() for problem in problems] == ["node.listen", "group.tickets.speed"]


def test_safe_delivery_and_a_founder_that_another_member_joins_later(tmp_path: Path) -> None:
    one, other = map(str, free_addresses(2))
    more = ("--delivery", "safe", "--json")
    first = ("node", "g", "--member", "a", "--listen", one, "--peer", other, "--founders", "1", *more)
    second = ("node", "g", "--member", "b", "--listen", other, "--peer", one, *more)
    with running(tmp_path, "a", *first) as founder, running(tmp_path, "b", *second) as joiner:
        founder.wait_printed(view=1, reason="the group was founded")
        founder.wait_printed(view=2, reason="b joined")
        joiner.type("hello")
        founder.wait_printed(sender="b", payload="hello")


def test_help_has_examples() -> None:
    result = CliRunner().invoke(app, ["node", "--help"])
    assert result.exit_code == 0
    assert "three terminals on one machine" in result.stdout

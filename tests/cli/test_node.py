"""`priocast node`: real processes on the loopback address."""

import json
import socket
from pathlib import Path

import pytest

from priocast.study.processes import free_ports
from priocast.trace.run_directory import read_manifest, segments
from support.command import priocast, refusal, start

pytestmark = pytest.mark.processes


def arguments(index: int, addresses: list[str], *more: str) -> list[str]:
    peers = [address for address in addresses if address != addresses[index]]
    options = [option for peer in peers for option in ("--peer", peer)]
    return ["node", "tickets", "--member", "abc"[index], "--listen", addresses[index], *options, *more]


def test_three_processes_print_the_same_lines(tmp_path: Path) -> None:
    addresses = [f"127.0.0.1:{port}" for port in free_ports(3)]
    more = ("--count", "6", "--json", "--trace", str(tmp_path / "run"))
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
        out, err = process.communicate(timeout=60)
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
    assert len(segments(tmp_path / "run")) == 3


def test_text_for_people() -> None:
    [address] = [f"127.0.0.1:{port}" for port in free_ports(1)]
    result = priocast(*arguments(0, [address], "--count", "1"), typed="urgent: hello\n")
    assert result.returncode == 0, result.stderr
    complete, line = result.stdout.splitlines()
    assert complete == "the group is complete: a (view 1)"
    assert line.split() == ["0", "a", "224", "hello"]


def test_what_cannot_be_is_refused_in_one_line() -> None:
    one, other = (f"127.0.0.1:{port}" for port in free_ports(2))
    good = ("node", "tickets", "--member", "a", "--listen", one)
    assert "no protocol 'paxos'; there are: sequencer-ub" in refusal(*good, "--order", "paxos")
    assert "write host:port" in refusal("node", "tickets", "--member", "a", "--listen", "7401")
    assert "cannot be the name of a member" in refusal("node", "tickets", "--member", "a b", "--listen", one)
    assert "is not a starvation policy" in refusal(*good, "--starvation", "sometimes")
    waiting = refusal(*good, "--peer", other, "--start-seconds", "0.2")
    assert "1 of the other members did not appear within 0.2 s" in waiting


def test_a_line_that_cannot_be_sent_is_named_and_the_next_one_goes_on() -> None:
    [address] = [f"127.0.0.1:{port}" for port in free_ports(1)]
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


def test_help_has_examples() -> None:
    result = priocast("node", "--help")
    assert result.returncode == 0
    assert "three terminals on one machine" in result.stdout

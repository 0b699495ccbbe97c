"""`priocast send`: a message from a process that is not a member."""

from pathlib import Path

import pytest

from operations.processes import running
from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.testing.addresses import free_addresses
from support.command import command_error, priocast

pytestmark = pytest.mark.processes


def test_message_is_sent_and_its_position_is_printed(tmp_path: Path) -> None:
    listen, unused = map(str, free_addresses(2))
    with running("a", "node", "tickets", "--member", "a", "--listen", listen, "--json") as node:
        node.wait_printed(view=1)
        sending = priocast(
            "send", "tickets", "--peer", unused, "--peer", listen, "--priority", "urgent", "two seats"
        )
        assert (sending.returncode, sending.stdout, sending.stderr) == (
            0,
            "the message has position 0 in the order\n",
            "",
        )
        event = node.wait_printed(payload="two seats", priority=224, sender="a", position=0)
        assert event["client"].startswith("client-")


def test_a_member_sends_with_a_quality_of_service() -> None:
    [listen] = map(str, free_addresses(1))
    with running("a", "node", "tickets", "--member", "a", "--listen", listen, "--json") as node:
        node.wait_printed(view=1)
        sending = priocast("send", "tickets", "--peer", listen, "--quality", "atomic", "--to", "a", "hello")
        assert (sending.returncode, sending.stderr) == (0, "")
        assert sending.stdout.endswith("/atomic/1 was answered by a, rounds: 1\n")
        node.wait_printed(payload="hello", quality="atomic", sender="a")
        rejected = command_error("send", "tickets", "--peer", listen, "--quality", "at-least:2", "hello")
        assert "a member rejected the message: at-least:2 asks for more than the 1 recipients" in rejected


def test_invalid_options_are_rejected() -> None:
    [unused] = free_addresses(1)
    valid = ("send", "tickets", "--peer", str(unused), "text")
    waited = command_error(*valid, "--timeout", "0.2")
    assert "tickets" in waited
    assert "0.2 s" in waited
    with pytest.raises(PriocastError, match="soon"):
        app([*valid, "--priority", "soon"], standalone_mode=False)
    for seconds in ("nan", "inf", "0"):
        with pytest.raises(PriocastError, match=f"--timeout is {seconds}: must be above 0"):
            app([*valid, "--timeout", seconds], standalone_mode=False)
    with pytest.raises(PriocastError, match="'fast' is not a quality"):
        app([*valid, "--quality", "fast"], standalone_mode=False)
    with pytest.raises(PriocastError, match="--safe and --agreed are for the total order"):
        app([*valid, "--quality", "reliable", "--agreed"], standalone_mode=False)
    with pytest.raises(PriocastError, match="TLS needs all of"):
        app([*valid, "--tls-key", "a.key"], standalone_mode=False)
    tls = ("--tls-certificate", "a.crt", "--tls-key", "a.key", "--tls-authority", "authority.crt")
    with pytest.raises(PriocastError, match=r"cannot read a\.crt"):
        app([*valid, *tls, "--key-file", "tickets.key"], standalone_mode=False)
    with pytest.raises(PriocastError, match=r"cannot read none\.key"):
        app([*valid, "--key-file", "none.key"], standalone_mode=False)

"""`priocast send`: a message from a process that is not a member."""

from pathlib import Path

import pytest

from operations.processes import running
from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.testing.addresses import free_addresses
from support.command import priocast, refusal

pytestmark = pytest.mark.processes


def test_a_message_is_sent_and_its_place_is_told(tmp_path: Path) -> None:
    listen, nobody = map(str, free_addresses(2))
    with running("a", "node", "tickets", "--member", "a", "--listen", listen, "--json") as node:
        node.wait_printed(view=1)
        sending = priocast(
            "send", "tickets", "--peer", nobody, "--peer", listen, "--priority", "urgent", "two seats"
        )
        assert (sending.returncode, sending.stdout, sending.stderr) == (
            0,
            "the message has position 0 in the order\n",
            "",
        )
        told = node.wait_printed(payload="two seats", priority=224, sender="a", position=0)
        assert told["client"].startswith("client-")


def test_what_cannot_be_sent_is_refused() -> None:
    [nobody] = free_addresses(1)
    good = ("send", "tickets", "--peer", str(nobody), "text")
    waited = refusal(*good, "--timeout", "0.2")
    assert "no member of tickets answered within 0.2 s (none could be reached)" in waited
    with pytest.raises(PriocastError, match="nor one of lowest"):
        app([*good, "--priority", "soon"], standalone_mode=False)
    for seconds in ("nan", "inf", "0"):
        with pytest.raises(PriocastError, match=f"--timeout is {seconds}: it must be above 0"):
            app([*good, "--timeout", seconds], standalone_mode=False)
    with pytest.raises(PriocastError, match="TLS needs all of"):
        app([*good, "--tls-key", "a.key"], standalone_mode=False)
    with pytest.raises(PriocastError, match=r"cannot read none\.key"):
        app([*good, "--key-file", "none.key"], standalone_mode=False)

"""`priocast console`: the page of a group from the command line."""

import signal
import sys
import urllib.request

from priocast.testing.addresses import free_addresses
from priocast.testing.child_process import ChildProcess
from support.waiting import PATIENCE_SECONDS

#: A background process of a shell, and what it starts, ignores Ctrl-C: a terminal's command does not.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from priocast.cli.main import main
main()
"""


def test_the_console_serves_the_page_until_it_is_interrupted() -> None:
    [address] = free_addresses(1)
    command = [sys.executable, "-c", PROGRAM, "console", str(address), "--no-browser"]
    with ChildProcess("console", command) as console:
        console.wait(lambda: console.output, PATIENCE_SECONDS, "the address of the page")
        url = console.output[0].decode().split(" at ")[1].split(" ")[0]
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as response:  # noqa: S310
            assert b"The order, as it happens" in response.read()
        console.send_signal(signal.SIGINT)
        assert console.wait_end(PATIENCE_SECONDS) == 130


def test_an_address_that_other_machines_can_reach_is_rejected() -> None:
    command = [sys.executable, "-m", "priocast", "console", "127.0.0.1:9401", "--listen", "0.0.0.0:0"]
    with ChildProcess("console", command) as console:
        assert console.wait_end(PATIENCE_SECONDS) == 2
        assert b"can be reached from other machines" in b"".join(console.errors)

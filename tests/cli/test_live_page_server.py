"""The live page of a group that a command runs."""

import http.client
import time

import pytest

from priocast.cli.live_page import live_page
from priocast.core.errors import InvalidAddress
from priocast.testing.addresses import free_addresses
from support.waiting import PATIENCE_SECONDS


def test_the_page_is_served_while_the_command_works_and_knows_who_watches() -> None:
    [nowhere] = free_addresses(1)
    with live_page([str(nowhere)], "127.0.0.1:0") as page:
        assert not page.wait_watched(0)
        connection = http.client.HTTPConnection(page.url.removeprefix("http://").rstrip("/"))
        connection.request("GET", "/events")
        assert connection.getresponse().read(6) == b"event:"
        assert page.wait_watched(PATIENCE_SECONDS)
        connection.close()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while page.wait_watched(0):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_an_address_that_cannot_be_used_is_an_error_of_the_command() -> None:
    with pytest.raises(InvalidAddress), live_page([], "0.0.0.0:0"):
        pass

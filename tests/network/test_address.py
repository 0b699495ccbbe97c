"""Addresses in the form `host:port`."""

import pytest

from priocast.core.errors import InvalidAddress
from priocast.network.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:7401", Address("127.0.0.1", 7401)),
        ("[::1]:80", Address("::1", 80)),
        ("host:1", Address("host", 1)),
    ],
)
def test_an_address_is_parsed_and_formatted_alike(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["7401", "127.0.0.1", "127.0.0.1:", ":7401", "host:0", "host:65536", "host:x", "host:-1"]
)
def test_other_text_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(InvalidAddress, match=r"host:port, for example 127.0.0.1:7401"):
        parse_address(text)

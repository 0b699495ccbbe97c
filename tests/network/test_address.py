"""Addresses in the form `host:port`."""

import pytest

from priocast.core.errors import InvalidAddress
from priocast.network.address import Address, check_multicast, parse_address


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


def test_an_address_that_is_none_to_multicast_to_is_rejected() -> None:
    assert check_multicast(Address("239.1.2.3", 7400)) == ("239.1.2.3", 7400)
    for host in ("10.0.0.1", "localhost", "ff02::1", "240.0.0.1"):
        with pytest.raises(InvalidAddress, match=r"is not a multicast address: .*239\.1\.2\.3:7400"):
            check_multicast(Address(host, 7400))

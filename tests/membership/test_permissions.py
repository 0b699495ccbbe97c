"""Which roles may send which datagrams."""

from typing import get_args

import pytest

from priocast.core.message import TO_ALL
from priocast.core.role import Role
from priocast.membership.datagrams import frame_of
from priocast.membership.packets import (
    AnyControl,
    ClientReply,
    ClientRequest,
    ClientSend,
    Control,
    OptionsMismatch,
)
from priocast.membership.permissions import SENDERS, may_send

REQUEST = frame_of(ClientRequest(1, 0, TO_ALL, b"x")).body


def test_every_datagram_is_in_the_table() -> None:
    assert set(SENDERS) == set(get_args(AnyControl))


@pytest.mark.parametrize("kind", SENDERS, ids=lambda kind: kind.__name__)
def test_a_client_may_send_requests_and_nothing_else_and_an_observer_nothing(kind: type[Control]) -> None:
    tag = str(kind.__struct_config__.tag)
    body = bytes([0x90 | 7, 0xA0 | len(tag)]) + tag.encode() + b"anything"
    assert may_send(Role.MEMBER, body)
    assert may_send(Role.CLIENT, body) is (kind in (ClientRequest, ClientSend))
    assert not may_send(Role.OBSERVER, body)


def test_the_tag_is_read_as_it_is_encoded() -> None:
    assert may_send(Role.CLIENT, REQUEST)
    for control in (OptionsMismatch("x"), ClientReply(1, 0, 5, "")):
        assert not may_send(Role.CLIENT, frame_of(control).body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        REQUEST[:1],
        REQUEST[:2],
        REQUEST[:9],
        b"\xff" * 20,
        b"\x90",
        b"\x91\xc1",
        b"\xdc\x00\x06" + REQUEST[1:],
    ],
)
def test_what_has_no_known_tag_is_for_members_alone(body: bytes) -> None:
    assert may_send(Role.MEMBER, body), "the decoder says what is wrong with it"
    assert not may_send(Role.CLIENT, body)
    assert not may_send(Role.OBSERVER, body)

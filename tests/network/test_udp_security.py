"""Sealed datagrams can only be opened by members of the group, and only if unaltered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.core.errors import Rejected
from priocast.network.udp_security import SEAL_BYTES, DatagramKind, Opener, Sealer, Session, read_header

KEY = bytes(range(32))
SESSION = Session(1, 2, 3, 4)


def opened(datagram: bytes, key: bytes = KEY) -> bytes:
    sealed = read_header(memoryview(datagram))
    return Opener(key, sealed.session).open(sealed)


@given(content=st.binary(max_size=3000), kind=st.sampled_from(DatagramKind))
def test_a_sealed_datagram_is_opened(content: bytes, kind: DatagramKind) -> None:
    datagram = Sealer(KEY, SESSION).seal(kind, content)
    sealed = read_header(memoryview(datagram))
    assert (sealed.kind, sealed.session, sealed.counter) == (kind, SESSION.packed(), 1)
    assert len(datagram) == len(content) + SEAL_BYTES
    assert opened(datagram) == content


@given(bit=st.integers(0, (SEAL_BYTES + 20) * 8 - 1))
def test_a_flipped_bit_makes_it_unreadable(bit: int) -> None:
    datagram = bytearray(Sealer(KEY, SESSION).seal(DatagramKind.FRAMES, bytes(20)))
    datagram[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Rejected) as rejected:
        opened(bytes(datagram))
    expected = {0: "not Priocast", 1: "not Priocast", 2: "another version of the wire format"}
    reason = expected.get(bit // 8, "not authentic")
    assert rejected.value.reason == reason or (
        bit // 8 == 3 and rejected.value.reason == "unknown kind of frame"
    )


def test_another_key_does_not_open_it() -> None:
    datagram = Sealer(KEY, SESSION).seal(DatagramKind.FRAMES, b"secret")
    assert b"secret" not in datagram
    with pytest.raises(Rejected, match="not authentic"):
        opened(datagram, bytes(32))


@pytest.mark.parametrize("field", ["group", "sender", "incarnation", "salt"])
def test_every_session_has_its_own_key(field: str) -> None:
    other = SESSION._replace(**{field: 99})
    first, second = Sealer(KEY, SESSION), Sealer(KEY, other)
    body = slice(44, None)
    assert first.seal(DatagramKind.FRAMES, bytes(9))[body] != second.seal(DatagramKind.FRAMES, bytes(9))[body]


def test_no_counter_is_used_twice() -> None:
    sealer = Sealer(KEY, SESSION)
    counters = [
        read_header(memoryview(sealer.seal(DatagramKind.FRAMES, b"same"))).counter for _ in range(100)
    ]
    assert counters == list(range(1, 101))
    assert sealer.counter == 100


def test_a_datagram_that_is_too_short_is_rejected() -> None:
    datagram = Sealer(KEY, SESSION).seal(DatagramKind.FRAMES, b"")
    assert opened(datagram) == b""
    with pytest.raises(Rejected, match="truncated"):
        opened(datagram[:-1])

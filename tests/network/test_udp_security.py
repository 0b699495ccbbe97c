"""Sealed datagrams can only be opened by members of the group, and only if unaltered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.core.errors import Rejected
from priocast.network.udp_security import SEAL_BYTES, DatagramKind, Opener, Sealer, Session, read_header

KEY = bytes(range(32))
SESSION = Session(1, 2, 3, 4)


RECEIVER = Session(1, 5, 6, 7).packed()
TO_ALL = {DatagramKind.CALL, DatagramKind.SHARED}


def opened(datagram: bytes, *keys: bytes, receiver: bytes = RECEIVER) -> bytes:
    sealed = read_header(memoryview(datagram))
    return Opener(keys or [KEY], sealed.session).open(sealed, receiver)


@given(content=st.binary(max_size=3000), kind=st.sampled_from(DatagramKind))
def test_a_sealed_datagram_is_opened(content: bytes, kind: DatagramKind) -> None:
    datagram = Sealer(KEY, SESSION).seal(kind, content, b"" if kind in TO_ALL else RECEIVER)
    sealed = read_header(memoryview(datagram))
    assert (sealed.kind, sealed.session, sealed.counter) == (kind, SESSION.packed(), 1)
    assert len(datagram) == len(content) + SEAL_BYTES
    assert opened(datagram) == content


@given(bit=st.integers(0, (SEAL_BYTES + 20) * 8 - 1))
def test_a_flipped_bit_makes_it_unreadable(bit: int) -> None:
    datagram = bytearray(Sealer(KEY, SESSION).seal(DatagramKind.FRAMES, bytes(20), RECEIVER))
    datagram[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Rejected) as rejected:
        opened(bytes(datagram))
    expected = {0: "not Priocast", 1: "not Priocast", 2: "another version of the wire format"}
    reason = expected.get(bit // 8, "not authentic")
    assert rejected.value.reason == reason or (
        bit // 8 == 3 and rejected.value.reason == "unknown kind of frame"
    )


def test_another_key_does_not_open_it() -> None:
    datagram = Sealer(KEY, SESSION).seal(DatagramKind.FRAMES, b"secret", RECEIVER)
    assert b"secret" not in datagram
    with pytest.raises(Rejected, match="not authentic"):
        opened(datagram, bytes(32))


@pytest.mark.parametrize("field", ["group", "sender", "incarnation", "salt"])
def test_every_session_has_its_own_key(field: str) -> None:
    other = SESSION._replace(**{field: 99})
    first, second = Sealer(KEY, SESSION), Sealer(KEY, other)
    body = slice(44, None)
    assert (
        first.seal(DatagramKind.FRAMES, bytes(9), RECEIVER)[body]
        != second.seal(DatagramKind.FRAMES, bytes(9), RECEIVER)[body]
    )


def test_no_counter_is_used_twice() -> None:
    sealer = Sealer(KEY, SESSION)
    counters = [
        read_header(memoryview(sealer.seal(DatagramKind.FRAMES, b"same", RECEIVER))).counter
        for _ in range(100)
    ]
    assert counters == list(range(1, 101))
    assert sealer.counter == 100


def test_a_datagram_that_is_too_short_is_rejected() -> None:
    datagram = Sealer(KEY, SESSION).seal(DatagramKind.FRAMES, b"", RECEIVER)
    assert opened(datagram) == b""
    with pytest.raises(Rejected, match="truncated"):
        opened(datagram[:-1])


@pytest.mark.parametrize("field", ["group", "sender", "incarnation", "salt"])
@pytest.mark.parametrize("kind", sorted(set(DatagramKind) - TO_ALL))
def test_only_the_receiver_that_it_was_sealed_for_opens_it(kind: DatagramKind, field: str) -> None:
    other = Session.unpacked(RECEIVER)._replace(**{field: 99}).packed()
    datagram = Sealer(KEY, SESSION).seal(kind, b"for one", RECEIVER)
    assert opened(datagram) == b"for one"
    with pytest.raises(Rejected, match="not authentic: sealed with another key or for another receiver"):
        opened(datagram, receiver=other)


@pytest.mark.parametrize("kind", sorted(TO_ALL))
def test_what_goes_to_all_is_opened_by_all_and_cannot_pass_for_anything_else(kind: DatagramKind) -> None:
    datagram = Sealer(KEY, SESSION).seal(kind, b"for all")
    assert opened(datagram) == opened(datagram, receiver=SESSION.packed()) == b"for all"
    for other in set(DatagramKind) - {kind}:
        with pytest.raises(Rejected, match="not authentic"):
            opened(datagram[:3] + bytes([other]) + datagram[4:])


def test_several_keys_open_while_a_group_changes_its_key() -> None:
    old, new = KEY, bytes(32)
    sealer = Sealer(old, SESSION)
    before = sealer.seal(DatagramKind.FRAMES, b"before", RECEIVER)
    sealer.change_key(new)
    after = sealer.seal(DatagramKind.FRAMES, b"after", RECEIVER)
    sealed = [read_header(memoryview(datagram)) for datagram in (before, after)]
    assert [each.counter for each in sealed] == [1, 2], "no nonce is used twice"
    both = Opener([old, new], sealed[0].session)
    for _ in range(2):
        assert [both.open(each, RECEIVER) for each in sealed] == [b"before", b"after"]
    with pytest.raises(Rejected, match="not authentic"):
        opened(after, old)
    with pytest.raises(Rejected, match="not authentic"):
        opened(before, new)

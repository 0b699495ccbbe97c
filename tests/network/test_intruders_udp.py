"""Intruders over UDP: each is rejected for the right reason and affects nobody.

The first half has no key. The second half is inside: it has the group's key, and misbehaves.
"""

import os
from pathlib import Path

import pytest

from network.intruders import HonestUdpPair, Insider, honest_udp_pair
from priocast.links.frame import Frame
from priocast.network.fragments import PARTIAL_BYTES_OF_ONE_MAX
from priocast.network.udp_content import LinkHeader, Sizes, pack_fragment, pack_fragments, pack_frames
from priocast.network.udp_security import DatagramKind, Sealer, Session
from support.networks import NetworkFactory, started
from support.waiting import run

SIZES = Sizes(1400)
KEY_WRONG = bytes(32)
EVIL = next(pack_frames(1, [Frame(0, 0, 0, 0, b"evil")], SIZES))


@pytest.fixture
def factory(tmp_path: Path) -> NetworkFactory:
    return NetworkFactory("udp", tmp_path)


HERE = "127.0.0.1", 1


def to_one(kind: DatagramKind, session: bytes = bytes(32)) -> bytes:
    """The receiver's session, for a kind that is sealed for one receiver."""
    return b"" if kind in {DatagramKind.CALL, DatagramKind.SHARED} else session


def flipped(datagram: bytes, byte: int) -> bytes:
    damaged = bytearray(datagram)
    damaged[byte] ^= 0x10
    return bytes(damaged)


def test_the_wrong_group_key(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            with Insider(factory, "c", KEY_WRONG) as stranger:
                stranger.say(DatagramKind.FRAMES, EVIL)
                pair.send_raw(stranger.known.call(HERE), stranger.known.call(None))
            await pair.assert_rejected_exactly({"not authentic": 2, "sender did not introduce itself": 1})
            assert list(pair.known.peers) == ["a"]

    run(test)


def test_a_replayed_datagram(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            words = pair.recorded(DatagramKind.FRAMES)
            pair.send_raw(*words, *words)
            await pair.assert_rejected("replayed datagram", 2 * len(words))

    run(test)


def test_a_replayed_reply_of_the_handshake(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            greetings = pair.recorded(DatagramKind.GREETING)
            assert greetings
            pair.send_raw(*greetings)
            await pair.assert_rejected("replayed datagram", len(greetings))

    run(test)


def test_a_replay_to_a_receiver_that_restarted(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            sent = [*pair.recorded(DatagramKind.GREETING), *pair.recorded(DatagramKind.FRAMES)]
            await pair.a.close()
            await pair.b.close()
        again = HonestUdpPair(factory, factory.datagrams("a", "b", 2), factory.datagrams("b", "", 2))
        async with started(again.b):
            again.send_raw(*sent)
            reasons = {"not authentic", "sender did not introduce itself"}
            await again.wait_rejected(*reasons)
            assert not again.b.groups[pair.known.me.group].peers
            async with started(again.a):
                await again.start()
                again.send_raw(*sent)
                await again.wait_rejected(*reasons, "old incarnation")
                await again.exchange()
                assert set(again.b.rejections) == {*reasons, "old incarnation"}
                assert list(again.known.peers) == ["a"]
                assert all(body.startswith(b"honest ") for body in again.recorders[1].bodies())

    run(test)


def test_a_truncated_datagram(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            word = pair.recorded(DatagramKind.FRAMES)[0]
            pair.send_raw(word[:59], word[:44], word[:1], b"")
            await pair.assert_rejected("truncated datagram", 4)

    run(test)


def test_a_datagram_without_its_end(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            fresh = Sealer(factory.keys["test"], pair.a.groups[pair.known.me.group].me)
            fresh.counter = 1000
            pair.send_raw(fresh.seal(DatagramKind.FRAMES, EVIL, pair.known.own_session)[:-1])
            await pair.assert_rejected("not authentic", 1)

    run(test)


@pytest.mark.parametrize("byte", [3, 43, 44, 60, -1], ids=["kind", "counter", "content", "body", "tag"])
def test_a_flipped_bit(byte: int, factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            fresh = Sealer(factory.keys["test"], pair.a.groups[pair.known.me.group].me)
            fresh.counter = 1000
            damaged = bytearray(fresh.seal(DatagramKind.FRAMES, EVIL, pair.known.own_session))
            damaged[byte] ^= 1
            pair.send_raw(bytes(damaged))
            await pair.assert_rejected("not authentic", 1)

    run(test)


@pytest.mark.parametrize(
    ("byte", "reason"),
    [
        (0, "not Priocast"),
        (2, "another version of the wire format"),
        (3, "unknown kind of frame"),
        (4, "unknown group"),
        (12, "sender did not introduce itself"),
        (20, "sender did not introduce itself"),
        (28, "sender did not introduce itself"),
    ],
    ids=["magic", "version", "kind", "group", "sender", "incarnation", "salt"],
)
def test_a_flipped_bit_in_the_header(byte: int, reason: str, factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            pair.send_raw(flipped(pair.recorded(DatagramKind.FRAMES)[0], byte))
            await pair.assert_rejected(reason, 1)

    run(test)


def test_a_forged_sender(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            session = pair.a.groups[pair.known.me.group].me
            forged = Sealer(KEY_WRONG, session)
            forged.counter = 1000
            me = pair.known.own_session
            pair.send_raw(forged.seal(DatagramKind.FRAMES, EVIL, me), forged.seal(DatagramKind.CALL, b""))
            await pair.assert_rejected("not authentic", 2)

    run(test)


def test_a_reflected_datagram(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            mine = pair.known.sealer
            pair.send_raw(mine.seal(DatagramKind.FRAMES, EVIL, pair.known.own_session), pair.known.call(HERE))
            await pair.assert_rejected("reflected datagram", 2)

    run(test)


def test_a_group_that_does_not_exist(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            elsewhere = Sealer(factory.keys["test"], Session(5, 6, 7, 8))
            pair.send_raw(*(elsewhere.seal(kind, EVIL, to_one(kind)) for kind in DatagramKind))
            await pair.assert_rejected("unknown group", len(DatagramKind))

    run(test)


def test_a_flood_of_forged_first_contacts(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            group = pair.known.me.group
            for number in range(1000):
                forged = Sealer(os.urandom(32), Session(group, number, number, number))
                pair.send_raw(forged.seal(DatagramKind.CALL, EVIL))
            await pair.exchange()
            await pair.assert_rejected("not authentic")
            assert list(pair.known.peers) == ["a"]
            assert len(pair.known._sessions) == 1

    run(test)


def test_garbage(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            pair.send_raw(
                bytes(65_507),
                bytes(100),
                b"GET / HTTP/1.1\r\nHost: tickets.example\r\nAccept: text/html\r\n\r\n",
            )
            await pair.assert_rejected("not Priocast", 3)

    run(test)


# Inside


def test_a_process_that_was_not_introduced(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            with Insider(factory, "c") as stranger:
                stranger.say(DatagramKind.FRAMES, EVIL)
                stranger.say(DatagramKind.FRAGMENTS, EVIL)
                stranger.say(DatagramKind.RECEIVED, EVIL)
                await pair.assert_rejected("sender did not introduce itself", 3)

    run(test)


def test_an_old_incarnation(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            with Insider(factory, "a", incarnation=0) as old:
                old.say(DatagramKind.FRAMES, EVIL)
                pair.send_raw(old.known.call(HERE))
                await pair.assert_rejected("old incarnation", 2)
                assert pair.known.peers["a"].incarnation == 1

    run(test)


def test_a_process_with_our_name(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            with Insider(factory, "b") as namesake:
                pair.send_raw(namesake.known.call(HERE))
                await pair.assert_rejected("a peer with our own name", 1)

    run(test)


@pytest.mark.parametrize("kind", [DatagramKind.FRAMES, DatagramKind.FRAGMENTS, DatagramKind.RECEIVED])
def test_malformed_content(kind: DatagramKind, factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            with Insider(factory, "c") as insider:
                await insider.introduce()
                insider.say(kind, b"", b"abc", EVIL[:-1] if kind is DatagramKind.FRAMES else b"\xff" * 9)
                await pair.assert_rejected("malformed content", 3)

    run(test)


def test_a_flood_of_fragments_of_incomplete_bodies(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            with Insider(factory, "c") as insider:
                await insider.introduce()
                me = pair.known.me.sender
                for sequence in range(1, 200):
                    fragment = pack_fragment(
                        [LinkHeader(me, 1, sequence, 0, 0)], sequence, bytes(1_000_000), 0, 128
                    )
                    insider.say(DatagramKind.FRAGMENTS, *pack_fragments(1, [fragment], SIZES))
                await pair.exchange()
                await pair.assert_rejected("incomplete fragments discarded")
                assert len(pair.b.reassembly) <= PARTIAL_BYTES_OF_ONE_MAX // 1_000_000

    run(test)


def test_contradictory_fragments(factory: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_udp_pair(factory) as pair:
            with Insider(factory, "c") as insider:
                await insider.introduce()
                header = LinkHeader(pair.known.me.sender, 1, 1, 0, 0)
                fragments = [pack_fragment([header], 1, bytes(size), 128, 128) for size in (300, 400)]
                fragments += [
                    pack_fragment([header], 2, bytes(300), 1, 128),
                    pack_fragment([header], 2, bytes(300), 0, 100),
                ]
                for fragment in fragments:
                    insider.say(DatagramKind.FRAGMENTS, *pack_fragments(1, [fragment], SIZES))
                await pair.assert_rejected("contradictory fragments", 3)
                assert len(pair.b.reassembly) == 0

    run(test)

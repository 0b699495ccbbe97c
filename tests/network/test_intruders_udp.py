"""Intruders over UDP: each is turned away for the right reason, reaches nobody, and changes nothing.

The first half has no key. The second half is inside: it has the group's key, and misbehaves.
"""

import os
from pathlib import Path

import pytest

from network.intruders import DatagramScene, Insider, datagram_scene
from priocast.links.fifo_link import Frame
from priocast.network.fragments import PARTIAL_BYTES_OF_ONE_MAX
from priocast.network.udp_content import LinkHeader, Sizes, pack_fragment, pack_fragments, pack_frames
from priocast.network.udp_handshake import ReplyPolicy
from priocast.network.udp_security import DatagramKind, Sealer, Session
from support.networks import Site, started
from support.waiting import run

SIZES = Sizes(1400)
KEY_WRONG = bytes(32)
EVIL = next(pack_frames(1, [Frame(0, 0, 0, 0, b"evil")], SIZES))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site("udp", tmp_path)


def flipped(datagram: bytes, byte: int) -> bytes:
    damaged = bytearray(datagram)
    damaged[byte] ^= 0x10
    return bytes(damaged)


def test_the_wrong_group_key(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            with Insider(site, "c", KEY_WRONG) as stranger:
                stranger.say(DatagramKind.FRAMES, EVIL)
                played.throw(stranger.known.greeting(), stranger.known.greeting(ReplyPolicy.IF_NEW))
            await played.stands_against({"not authentic": 2, "sender did not introduce itself": 1})
            assert list(played.known.peers) == ["a"]

    run(test)


def test_a_replayed_datagram(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            words = played.recorded(DatagramKind.FRAMES)
            played.throw(*words, *words)
            await played.stands("replayed datagram", 2 * len(words))

    run(test)


def test_a_replayed_answer_of_the_handshake(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            greetings = played.recorded(DatagramKind.GREETING)
            assert greetings
            played.throw(*greetings)
            await played.stands("replayed datagram", len(greetings))

    run(test)


def test_a_replay_to_a_receiver_that_restarted(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            said = [*played.recorded(DatagramKind.GREETING), *played.recorded(DatagramKind.FRAMES)]
            await played.a.close()
            await played.b.close()
        again = DatagramScene(site, site.datagrams("a", "b", 2), site.datagrams("b", "", 2))
        async with started(again.b):
            again.throw(*said)
            reasons = {"answer to another challenge", "sender did not introduce itself"}
            await again.refuses(*reasons)
            assert not again.b.groups[played.known.me.group].peers
            async with started(again.a):
                await again.begin()
                again.throw(*said)
                await again.refuses(*reasons, "old incarnation")
                await again.go_on()
                assert set(again.b.rejections) == {*reasons, "old incarnation"}
                assert list(again.known.peers) == ["a"]
                assert all(body.startswith(b"honest ") for body in again.recorders[1].bodies())

    run(test)


def test_a_truncated_datagram(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            word = played.recorded(DatagramKind.FRAMES)[0]
            played.throw(word[:59], word[:44], word[:1], b"")
            await played.stands("truncated datagram", 4)

    run(test)


def test_a_datagram_whose_end_is_missing(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            fresh = Sealer(site.keys["test"], played.a.groups[played.known.me.group].me)
            fresh.counter = 1000
            played.throw(fresh.seal(DatagramKind.FRAMES, EVIL)[:-1])
            await played.stands("not authentic", 1)

    run(test)


@pytest.mark.parametrize("byte", [3, 43, 44, 60, -1], ids=["kind", "counter", "content", "body", "tag"])
def test_a_flipped_bit(byte: int, site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            fresh = Sealer(site.keys["test"], played.a.groups[played.known.me.group].me)
            fresh.counter = 1000
            damaged = bytearray(fresh.seal(DatagramKind.FRAMES, EVIL))
            damaged[byte] ^= 1
            played.throw(bytes(damaged))
            await played.stands("not authentic", 1)

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
def test_a_flipped_bit_in_the_header(byte: int, reason: str, site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            played.throw(flipped(played.recorded(DatagramKind.FRAMES)[0], byte))
            await played.stands(reason, 1)

    run(test)


def test_a_forged_sender(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            session = played.a.groups[played.known.me.group].me
            forged = Sealer(KEY_WRONG, session)
            forged.counter = 1000
            played.throw(forged.seal(DatagramKind.FRAMES, EVIL), forged.seal(DatagramKind.GREETING, b""))
            await played.stands("not authentic", 2)

    run(test)


def test_a_reflected_datagram(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            mine = played.known.sealer
            played.throw(mine.seal(DatagramKind.FRAMES, EVIL), played.known.greeting())
            await played.stands("reflected datagram", 2)

    run(test)


def test_a_group_that_does_not_exist(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            elsewhere = Sealer(site.keys["test"], Session(5, 6, 7, 8))
            played.throw(*(elsewhere.seal(kind, EVIL) for kind in DatagramKind))
            await played.stands("unknown group", len(DatagramKind))

    run(test)


def test_a_flood_of_forged_first_contacts(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            group = played.known.me.group
            for number in range(1000):
                forged = Sealer(os.urandom(32), Session(group, number, number, number))
                played.throw(forged.seal(DatagramKind.GREETING, EVIL))
            await played.go_on()
            await played.stands("not authentic")
            assert list(played.known.peers) == ["a"]
            assert len(played.known._sessions) == 1

    run(test)


def test_garbage(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            played.throw(
                bytes(65_507),
                bytes(100),
                b"GET / HTTP/1.1\r\nHost: tickets.example\r\nAccept: text/html\r\n\r\n",
            )
            await played.stands("not Priocast", 3)

    run(test)


# Inside


def test_a_process_that_was_not_introduced(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            with Insider(site, "c") as stranger:
                stranger.say(DatagramKind.FRAMES, EVIL)
                stranger.say(DatagramKind.FRAGMENTS, EVIL)
                stranger.say(DatagramKind.RECEIVED, EVIL)
                await played.stands("sender did not introduce itself", 3)

    run(test)


def test_an_old_incarnation(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            with Insider(site, "a", incarnation=0) as old:
                old.say(DatagramKind.FRAMES, EVIL)
                played.throw(old.known.greeting())
                await played.stands("old incarnation", 2)
                assert played.known.peers["a"].incarnation == 1

    run(test)


def test_a_namesake_of_ours(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            with Insider(site, "b") as namesake:
                played.throw(namesake.known.greeting())
                await played.stands("a peer with our own name", 1)

    run(test)


@pytest.mark.parametrize("kind", [DatagramKind.FRAMES, DatagramKind.FRAGMENTS, DatagramKind.RECEIVED])
def test_content_that_makes_no_sense(kind: DatagramKind, site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            with Insider(site, "c") as insider:
                await insider.introduce()
                insider.say(kind, b"", b"abc", EVIL[:-1] if kind is DatagramKind.FRAMES else b"\xff" * 9)
                await played.stands("malformed content", 3)

    run(test)


def test_a_flood_of_pieces_that_never_make_a_body(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            with Insider(site, "c") as insider:
                await insider.introduce()
                me = played.known.me.sender
                for sequence in range(1, 200):
                    fragment = pack_fragment(
                        [LinkHeader(me, 1, sequence, 0, 0)], sequence, bytes(1_000_000), 0, 128
                    )
                    insider.say(DatagramKind.FRAGMENTS, *pack_fragments(1, [fragment], SIZES))
                await played.go_on()
                await played.stands("incomplete fragments discarded")
                assert len(played.b.reassembly) <= PARTIAL_BYTES_OF_ONE_MAX // 1_000_000

    run(test)


def test_pieces_that_contradict_each_other(site: Site) -> None:
    async def test() -> None:
        async with datagram_scene(site) as played:
            with Insider(site, "c") as insider:
                await insider.introduce()
                header = LinkHeader(played.known.me.sender, 1, 1, 0, 0)
                fragments = [pack_fragment([header], 1, bytes(size), 128, 128) for size in (300, 400)]
                fragments += [
                    pack_fragment([header], 2, bytes(300), 1, 128),
                    pack_fragment([header], 2, bytes(300), 0, 100),
                ]
                for fragment in fragments:
                    insider.say(DatagramKind.FRAGMENTS, *pack_fragments(1, [fragment], SIZES))
                await played.stands("contradictory fragments", 3)
                assert len(played.b.reassembly) == 0

    run(test)

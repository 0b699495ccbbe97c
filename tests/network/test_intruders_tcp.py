"""Intruders over TCP and TLS: each is turned away for the right reason, reaches nobody, changes nothing."""

import asyncio
import ssl
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from network.intruders import call, data, hello, impostor, scene
from priocast.network.codec import FRAME_BYTES_MAX, HEADER_BYTES
from priocast.network.keys import make_authority, make_member_certificate
from support.networks import Site, open_all, started
from support.waiting import PATIENCE_SECONDS, run, wait_until


@pytest.fixture
def plain(tmp_path: Path) -> Site:
    return Site("tcp", tmp_path)


@pytest.fixture
def secure(tmp_path: Path) -> Site:
    return Site("tls", tmp_path)


def length_of(frame: bytes, length: int) -> bytes:
    return frame[:28] + length.to_bytes(4) + frame[32:]


# In the clear


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: tickets.example\r\n\r\n" + bytes(64), "not Priocast"),
        (hello("c")[:2] + b"\x09" + hello("c")[3:], "another version of the wire format"),
        (hello("c")[:3] + b"\x63" + hello("c")[4:], "unknown kind of frame"),
        (hello("c")[:HEADER_BYTES] + b"\xc1" * (len(hello("c")) - HEADER_BYTES), "malformed content"),
        (hello("../c"), "malformed content"),
        (hello("b"), "a peer with our own name"),
        (length_of(hello("c"), 2**32 - 1), "frame over the limit"),
        (length_of(hello("c"), 1025), "frame over the limit"),
        (data("test", "a"), "sender did not introduce itself"),
        (hello("c") + data("test", "c"), "frame before the welcome"),
        (hello("a") + data("test", "a"), "frame before the welcome"),
        (hello("c") + hello("c"), "second introduction"),
        (hello("c")[:3] + b"\x02" + hello("c")[4:], "unexpected frame"),
    ],
    ids=[
        "garbage",
        "version",
        "kind",
        "unreadable",
        "name",
        "namesake",
        "huge",
        "large-hello",
        "no-hello",
        "too-early",
        "too-early-as-a-friend",
        "hello-twice",
        "welcome",
    ],
)
def test_a_bad_beginning(words: bytes, reason: str, plain: Site) -> None:
    async def test() -> None:
        async with scene(plain) as played:
            answer = await call(plain.address("b"), words)
            assert reason.encode() in answer, "it is told why"
            await played.stands(reason, 1)

    run(test)


@pytest.mark.parametrize(("kind", "words"), [("tcp", hello("c")[:40]), ("tls", b"\x16\x03\x01")])
def test_a_visitor_who_leaves_before_he_is_introduced(kind: str, words: bytes, tmp_path: Path) -> None:
    async def test() -> None:
        site = Site(kind, tmp_path)
        async with scene(site) as played:
            _, writer = await asyncio.open_connection(*site.address("b"))
            writer.write(words)
            writer.close()
            await played.stands("closed before the introduction", 1)

    run(test)


def test_a_slow_introduction(plain: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with scene(plain) as played:
            monkeypatch.setattr("priocast.network.tcp_listener.HANDSHAKE_SECONDS", 0.3)
            reader, writer = await asyncio.open_connection(*plain.address("b"))
            for byte in hello("c")[:60]:
                writer.write(bytes([byte]))
                if played.b.rejections:
                    break
                await asyncio.sleep(0.02)
            with suppress(OSError):
                await reader.read(-1)
            writer.close()
            await played.stands("introduction timed out", 1)

    run(test)


def test_one_who_cannot_be_dialled_back(plain: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with scene(plain) as played:
            monkeypatch.setattr("priocast.network.tcp_listener.HANDSHAKE_SECONDS", 0.3)
            answer = await call(plain.address("b"), hello("c"))
            assert b"could not be dialled back" in answer
            await played.stands("could not be dialled back", 1)

    run(test)


def test_many_idle_connections(plain: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.network.tcp_listener.STRANGERS_MAX", 20)

    async def test() -> None:
        async with scene(plain) as played, AsyncExitStack() as stack:
            for _ in range(70):
                _, writer = await asyncio.open_connection(*plain.address("b"))
                stack.callback(writer.close)
            await wait_until(lambda: played.b.rejections["too many strangers"] == 50)
            assert len(played.b._listener._strangers) == 20
            await played.stands("too many strangers", 50)

    run(test)


def test_many_addresses_to_be_learnt(plain: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.network.tcp_dialler.LEARNT_MAX", 10)

    async def test() -> None:
        async with scene(plain) as played, AsyncExitStack() as stack:
            for number in range(30):
                reader, writer = await asyncio.open_connection(*plain.address("b"))
                stack.callback(writer.close)
                writer.write(hello(f"c{number}", plain.address("b")._replace(port=number + 1)))
                assert await reader.read(2000)
            assert len(played.b._diallers._diallers) <= 11
            await played.stands("too many learnt addresses", 20)

    run(test)


def test_many_connections_of_one_process(plain: Site) -> None:
    async def test() -> None:
        async with (
            scene(plain) as played,
            impostor("c", plain.address("b")),
            AsyncExitStack() as stack,
        ):
            for _ in range(6):
                reader, writer = await asyncio.open_connection(*plain.address("b"))
                stack.callback(writer.close)
                writer.write(hello("c"))
                assert await reader.read(2000)
            await wait_until(lambda: len(played.b._accepted("c")) == 4)
            await played.stands("too many connections", 3)

    run(test)


def test_more_processes_than_there_is_room_for(plain: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.network.tcp.ACCEPTED_MAX", 1)

    async def test() -> None:
        async with scene(plain) as played, impostor("c", plain.address("b")):
            await played.stands("too many connections", 1)

    run(test)


@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_a_frame_in_the_name_of_another(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        site = Site(kind, tmp_path)
        contexts = site.certificate("c").contexts() if kind == "tls" else None
        async with scene(site) as played, impostor("c", site.address("b"), contexts) as intruder:
            await intruder.say(data("test", "a"))
            await played.stands("frame of another sender", 1)

    run(test)


@pytest.mark.parametrize("kind", ["tcp", "tls"])
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (hello("c"), "second introduction"),
        (length_of(data("test", "c"), FRAME_BYTES_MAX + 1), "frame over the limit"),
        (bytes(64), "not Priocast"),
        (data("elsewhere", "c"), "unknown group"),
    ],
    ids=["hello", "huge", "garbage", "group"],
)
def test_a_friend_who_turns_bad(words: bytes, reason: str, kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        site = Site(kind, tmp_path)
        contexts = site.certificate("c").contexts() if kind == "tls" else None
        async with scene(site) as played, impostor("c", site.address("b"), contexts) as intruder:
            await intruder.say(words)
            expected = reason
            if (kind, reason) == ("tls", "unknown group"):
                expected = "certificate is not for this group"
            await played.stands(expected, 1)

    run(test)


# With TLS


def stranger() -> ssl.SSLContext:
    """A client that shows no certificate, and takes any."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def showing(site: Site, certificate: Path, key: Path) -> ssl.SSLContext:
    context = stranger()
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize(
    "words", [hello("c"), b"GET / HTTP/1.1\r\n\r\n", bytes(100)], ids=["hello", "http", "zeros"]
)
def test_plain_words_to_a_port_with_tls(words: bytes, secure: Site) -> None:
    async def test() -> None:
        async with scene(secure) as played:
            await call(secure.address("b"), words)
            await played.stands("not TLS", 1)

    run(test)


def test_no_certificate(secure: Site) -> None:
    async def test() -> None:
        async with scene(secure) as played:
            assert await call(secure.address("b"), hello("a"), context=stranger()) == b""
            await played.stands("no certificate", 1)

    run(test)


def test_tls_1_2(secure: Site) -> None:
    async def test() -> None:
        async with scene(secure) as played:
            made = secure.certificate("c")
            context = showing(secure, made.certificate, made.key)
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            assert await call(secure.address("b"), hello("c"), context=context) == b""
            await played.stands("TLS before 1.3", 1)

    run(test)


def test_a_certificate_of_another_authority(secure: Site, tmp_path: Path) -> None:
    async def test() -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        forged = make_member_certificate(elsewhere, make_authority(elsewhere), "a", ["test"])
        async with scene(secure) as played:
            context = showing(secure, forged.certificate, forged.key)
            assert await call(secure.address("b"), hello("a"), context=context) == b""
            await played.stands("certificate of another authority", 1)

    run(test)


@pytest.mark.parametrize("begins", [-3, 3], ids=["expired", "not-yet"])
def test_a_certificate_out_of_date(begins: int, secure: Site, tmp_path: Path) -> None:
    async def test() -> None:
        begin = datetime.now(UTC) + timedelta(days=begins)
        old = make_member_certificate(tmp_path, secure.authority, "c", ["test"], days=1, valid_from=begin)
        async with scene(secure) as played:
            context = showing(secure, old.certificate, old.key)
            assert await call(secure.address("b"), hello("c"), context=context) == b""
            await played.stands("certificate out of date", 1)

    run(test)


def test_a_certificate_of_another_member(secure: Site) -> None:
    async def test() -> None:
        async with scene(secure) as played:
            made = secure.certificate("c")
            context = showing(secure, made.certificate, made.key)
            answer = await call(secure.address("b"), hello("a"), context=context)
            assert b"certificate of another member" in answer
            await played.stands("certificate of another member", 1)

    run(test)


def test_a_certificate_for_another_group(secure: Site, tmp_path: Path) -> None:
    async def test() -> None:
        other = make_member_certificate(tmp_path, secure.authority, "c", ["other"])
        async with (
            scene(secure) as played,
            impostor("c", secure.address("b"), other.contexts()) as intruder,
        ):
            await intruder.say(data("test", "c"))
            await played.stands("certificate is not for this group", 1)
            assert "c" not in played.recorders[1].told, "nor is the group told that it can be reached"
            played.ports[1].send("c", [])

    run(test)


def test_a_slow_tls_handshake(secure: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with scene(secure) as played:
            monkeypatch.setattr("priocast.network.tcp_listener.HANDSHAKE_SECONDS", 0.3)
            reader, writer = await asyncio.open_connection(*secure.address("b"))
            writer.write(b"\x16\x03\x01")
            with suppress(OSError):
                await asyncio.wait_for(reader.read(-1), PATIENCE_SECONDS)
            writer.close()
            await played.stands("introduction timed out", 1)

    run(test)


def test_many_idle_tls_handshakes(secure: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.network.tcp_listener.STRANGERS_MAX", 20)

    async def test() -> None:
        async with scene(secure) as played, AsyncExitStack() as stack:
            for _ in range(50):
                _, writer = await asyncio.open_connection(*secure.address("b"))
                stack.callback(writer.close)
            await wait_until(lambda: played.b.rejections["too many strangers"] == 30)
            assert len(played.b._listener._strangers) <= 20
            await played.stands("too many strangers", 30)

    run(test)


def test_a_server_with_a_forged_certificate_is_not_sent_anything(secure: Site, tmp_path: Path) -> None:
    """The other direction: whoever took the address of a peer."""

    async def test() -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        forged = make_member_certificate(elsewhere, make_authority(elsewhere), "c", ["test"])
        heard = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read(-1))

        server = await asyncio.start_server(serve, *secure.address("c"), ssl=forged.contexts()[0])
        network = secure.network("a", "c")
        async with started(network):
            [recorder] = open_all([network], "a")
            await wait_until(lambda: network.rejections["certificate of another authority"] >= 2)
            assert not recorder.told
            assert not any(heard)
        server.close()

    run(test)

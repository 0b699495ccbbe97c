"""Intruders over TCP and TLS: each is rejected for the right reason and affects nobody."""

import asyncio
import ssl
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from network.intruders import call, data, hello, honest_pair, impostor
from priocast.network.codec import FRAME_BYTES_MAX, HEADER_BYTES
from priocast.network.keys import make_authority, make_member_certificate
from support.networks import NetworkFactory, open_all, started
from support.waiting import PATIENCE_SECONDS, run, wait_until


@pytest.fixture
def plain(tmp_path: Path) -> NetworkFactory:
    return NetworkFactory("tcp", tmp_path)


@pytest.fixture
def secure(tmp_path: Path) -> NetworkFactory:
    return NetworkFactory("tls", tmp_path)


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
def test_an_invalid_introduction(words: bytes, reason: str, plain: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_pair(plain) as pair:
            answer = await call(plain.address("b"), words)
            assert reason.encode() in answer, "the reason is sent to it"
            await pair.assert_rejected(reason, 1)

    run(test)


@pytest.mark.parametrize(("kind", "words"), [("tcp", hello("c")[:40]), ("tls", b"\x16\x03\x01")])
def test_a_connection_closed_before_the_introduction(kind: str, words: bytes, tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory(kind, tmp_path)
        async with honest_pair(factory) as pair:
            _, writer = await asyncio.open_connection(*factory.address("b"))
            writer.write(words)
            writer.close()
            await pair.assert_rejected("closed before the introduction", 1)

    run(test)


def test_a_slow_introduction(plain: NetworkFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with honest_pair(plain) as pair:
            monkeypatch.setattr("priocast.network.tcp_listener.HANDSHAKE_SECONDS", 0.3)
            reader, writer = await asyncio.open_connection(*plain.address("b"))
            for byte in hello("c")[:60]:
                writer.write(bytes([byte]))
                if pair.b.rejections:
                    break
                await asyncio.sleep(0.02)
            with suppress(OSError):
                await reader.read(-1)
            writer.close()
            await pair.assert_rejected("introduction timed out", 1)

    run(test)


def test_a_process_that_cannot_be_dialled_back(
    plain: NetworkFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with honest_pair(plain) as pair:
            monkeypatch.setattr("priocast.network.tcp_listener.HANDSHAKE_SECONDS", 0.3)
            answer = await call(plain.address("b"), hello("c"))
            assert b"could not be dialled back" in answer
            await pair.assert_rejected("could not be dialled back", 1)

    run(test)


def test_one_host_has_a_limited_number_of_connections(
    plain: NetworkFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("priocast.network.tcp_listener.ACCEPTED_OF_HOST_MAX", 20)

    async def test() -> None:
        async with honest_pair(plain) as pair:
            async with AsyncExitStack() as stack:
                for _ in range(30):
                    _, writer = await asyncio.open_connection(*plain.address("b"))
                    stack.callback(writer.close)
                await wait_until(lambda: pair.b.rejections["too many connections"] == 11)
            await wait_until(lambda: pair.b._listener._accepted_of == {"127.0.0.1": 1})
            await pair.assert_rejected_exactly(
                {"too many connections": 11, "closed before the introduction": 19}
            )

    run(test)


def test_many_idle_connections(plain: NetworkFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.network.tcp_listener.STRANGERS_MAX", 20)

    async def test() -> None:
        async with honest_pair(plain) as pair, AsyncExitStack() as stack:
            for _ in range(70):
                _, writer = await asyncio.open_connection(*plain.address("b"))
                stack.callback(writer.close)
            await wait_until(lambda: pair.b.rejections["too many strangers"] == 50)
            assert len(pair.b._listener._strangers) == 20
            await pair.assert_rejected("too many strangers", 50)

    run(test)


def test_many_learnt_addresses(plain: NetworkFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.network.tcp_dialler.LEARNT_MAX", 10)

    async def test() -> None:
        async with honest_pair(plain) as pair, AsyncExitStack() as stack:
            for number in range(30):
                reader, writer = await asyncio.open_connection(*plain.address("b"))
                stack.callback(writer.close)
                writer.write(hello(f"c{number}", plain.address("b")._replace(port=number + 1)))
                assert await reader.read(2000)
            assert len(pair.b._diallers._diallers) <= 11
            await pair.assert_rejected("too many learnt addresses", 20)

    run(test)


def test_many_connections_of_one_process(plain: NetworkFactory) -> None:
    async def test() -> None:
        async with (
            honest_pair(plain) as pair,
            impostor("c", plain.address("b")),
            AsyncExitStack() as stack,
        ):
            for _ in range(6):
                reader, writer = await asyncio.open_connection(*plain.address("b"))
                stack.callback(writer.close)
                writer.write(hello("c"))
                assert await reader.read(2000)
            await wait_until(lambda: len([each for each in pair.b._accepted() if each.name == "c"]) == 4)
            await pair.assert_rejected("too many connections", 3)

    run(test)


def test_too_many_processes(plain: NetworkFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.network.tcp.ACCEPTED_MAX", 1)

    async def test() -> None:
        async with honest_pair(plain) as pair, impostor("c", plain.address("b")):
            await pair.assert_rejected("too many connections", 1)

    run(test)


@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_a_frame_of_another_sender(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory(kind, tmp_path)
        contexts = factory.certificate("c").contexts() if kind == "tls" else None
        async with honest_pair(factory) as pair, impostor("c", factory.address("b"), contexts) as intruder:
            await intruder.say(data("test", "a"))
            await pair.assert_rejected("frame of another sender", 1)

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
def test_a_known_process_that_misbehaves(words: bytes, reason: str, kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory(kind, tmp_path)
        contexts = factory.certificate("c").contexts() if kind == "tls" else None
        async with honest_pair(factory) as pair, impostor("c", factory.address("b"), contexts) as intruder:
            await intruder.say(words)
            expected = reason
            if (kind, reason) == ("tls", "unknown group"):
                expected = "certificate is not for this group"
            await pair.assert_rejected(expected, 1)

    run(test)


# With TLS


def stranger() -> ssl.SSLContext:
    """A client without a certificate, that accepts any."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def showing(factory: NetworkFactory, certificate: Path, key: Path) -> ssl.SSLContext:
    context = stranger()
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize(
    "words", [hello("c"), b"GET / HTTP/1.1\r\n\r\n", bytes(100)], ids=["hello", "http", "zeros"]
)
def test_plain_text_to_a_tls_port(words: bytes, secure: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_pair(secure) as pair:
            await call(secure.address("b"), words)
            await pair.assert_rejected("not TLS", 1)

    run(test)


def test_no_certificate(secure: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_pair(secure) as pair:
            assert await call(secure.address("b"), hello("a"), context=stranger()) == b""
            await pair.assert_rejected("no certificate", 1)

    run(test)


def test_tls_1_2(secure: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_pair(secure) as pair:
            made = secure.certificate("c")
            context = showing(secure, made.certificate, made.key)
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            assert await call(secure.address("b"), hello("c"), context=context) == b""
            await pair.assert_rejected("TLS before 1.3", 1)

    run(test)


def test_a_certificate_of_another_authority(secure: NetworkFactory, tmp_path: Path) -> None:
    async def test() -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        forged = make_member_certificate(elsewhere, make_authority(elsewhere), "a", ["test"])
        async with honest_pair(secure) as pair:
            context = showing(secure, forged.certificate, forged.key)
            assert await call(secure.address("b"), hello("a"), context=context) == b""
            await pair.assert_rejected("certificate of another authority", 1)

    run(test)


@pytest.mark.parametrize("starts_in_days", [-3, 3], ids=["expired", "not-yet"])
def test_a_certificate_out_of_date(starts_in_days: int, secure: NetworkFactory, tmp_path: Path) -> None:
    async def test() -> None:
        valid_from = datetime.now(UTC) + timedelta(days=starts_in_days)
        old = make_member_certificate(
            tmp_path, secure.authority, "c", ["test"], days=1, valid_from=valid_from
        )
        async with honest_pair(secure) as pair:
            context = showing(secure, old.certificate, old.key)
            assert await call(secure.address("b"), hello("c"), context=context) == b""
            await pair.assert_rejected("certificate out of date", 1)

    run(test)


def test_a_certificate_of_another_member(secure: NetworkFactory) -> None:
    async def test() -> None:
        async with honest_pair(secure) as pair:
            made = secure.certificate("c")
            context = showing(secure, made.certificate, made.key)
            answer = await call(secure.address("b"), hello("a"), context=context)
            assert b"certificate of another member" in answer
            await pair.assert_rejected("certificate of another member", 1)

    run(test)


def test_a_certificate_for_another_group(secure: NetworkFactory, tmp_path: Path) -> None:
    async def test() -> None:
        other = make_member_certificate(tmp_path, secure.authority, "c", ["other"])
        async with (
            honest_pair(secure) as pair,
            impostor("c", secure.address("b"), other.contexts()) as intruder,
        ):
            await intruder.say(data("test", "c"))
            await pair.assert_rejected("certificate is not for this group", 1)
            assert "c" not in pair.recorders[1].reached, "and it is not reported as reachable"
            pair.ports[1].send("c", [])

    run(test)


def test_a_slow_tls_handshake(secure: NetworkFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with honest_pair(secure) as pair:
            monkeypatch.setattr("priocast.network.tcp_listener.HANDSHAKE_SECONDS", 0.3)
            reader, writer = await asyncio.open_connection(*secure.address("b"))
            writer.write(b"\x16\x03\x01")
            with suppress(OSError):
                await asyncio.wait_for(reader.read(-1), PATIENCE_SECONDS)
            writer.close()
            await pair.assert_rejected("introduction timed out", 1)

    run(test)


def test_many_idle_tls_handshakes(secure: NetworkFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.network.tcp_listener.STRANGERS_MAX", 20)

    async def test() -> None:
        async with honest_pair(secure) as pair, AsyncExitStack() as stack:
            for _ in range(50):
                _, writer = await asyncio.open_connection(*secure.address("b"))
                stack.callback(writer.close)
            await wait_until(lambda: pair.b.rejections["too many strangers"] == 30)
            assert len(pair.b._listener._strangers) <= 20
            await pair.assert_rejected("too many strangers", 30)

    run(test)


def test_a_server_with_a_forged_certificate_is_not_sent_anything(
    secure: NetworkFactory, tmp_path: Path
) -> None:
    """The other direction: an intruder at the address of a peer."""

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
            assert not recorder.reached
            assert not any(heard)
        server.close()

    run(test)

"""What a process dials because an introduction names it: nothing else than its sender's own host."""

import asyncio
import logging
from pathlib import Path

import pytest

from network.intruders import call, hello, honest_pair
from priocast.network.address import Address
from priocast.network.dial_back import DialBackRate, address_to_dial
from priocast.network.tcp import TcpNetwork
from support.networks import NetworkFactory, free_address, open_all, started
from support.waiting import run, wait_until

REMOTE = "10.0.0.7"


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("", REMOTE),
        (REMOTE, REMOTE),
        ("::ffff:10.0.0.7", REMOTE),
        ("0.0.0.0", REMOTE),  # noqa: S104 - what a stranger may write
        ("internal.example", REMOTE),
        ("a" * 255, REMOTE),
        ("10.0.0.8", None),
        ("127.0.0.1", None),
        ("::1", None),
        ("169.254.169.254", None),
    ],
)
def test_without_a_certificate_only_the_remote_host_is_dialled(host: str, found: str | None) -> None:
    dialled = address_to_dial(Address(host, 80), REMOTE, certified=False)
    assert dialled == (None if found is None else Address(found, 80))


def test_all_loopback_addresses_are_of_one_host() -> None:
    assert address_to_dial(Address("127.0.0.9", 80), "127.0.0.1", certified=False) == ("127.0.0.9", 80)


def test_with_a_certificate_any_numeric_address_is_dialled() -> None:
    assert address_to_dial(Address("10.0.0.8", 80), REMOTE, certified=True) == Address("10.0.0.8", 80)
    assert address_to_dial(Address("internal.example", 80), REMOTE, certified=True) == Address(REMOTE, 80)
    assert address_to_dial(Address("224.0.0.1", 80), REMOTE, certified=True) is None


def test_a_process_that_names_no_port_is_not_dialled() -> None:
    assert address_to_dial(Address(REMOTE, 0), REMOTE, certified=True) is None


def test_the_rate_is_limited_for_each_host() -> None:
    now = 0.0
    rate = DialBackRate(3, 2.0, lambda: now)
    assert [rate.admit("x") for _ in range(5)] == [True, True, True, False, False]
    assert rate.admit("y")
    now = 1.0
    assert [rate.admit("x") for _ in range(3)] == [True, True, False]
    for number in range(1000):
        rate.admit(str(number))
    assert len(rate._hosts) <= 256


def test_a_stranger_chooses_neither_host_nor_name_to_dial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    factory = NetworkFactory("tcp", tmp_path)
    hosts = ("192.0.2.1", "intruder.example", "a" * 255, "nul\0byte")

    async def test() -> None:
        loop, used = asyncio.get_running_loop(), set()
        connect = loop.create_connection

        async def record(make: object, host: str, port: int, **options: object) -> object:
            used.add(host)
            return await connect(make, host, port, **options)  # type: ignore[call-overload]

        async with honest_pair(factory) as pair:
            monkeypatch.setattr("priocast.network.tcp_listener.HANDSHAKE_SECONDS", 0.3)
            monkeypatch.setattr(loop, "create_connection", record)
            port = free_address().port
            answers = [await call(factory.address("b"), hello("c", Address(host, port))) for host in hosts]
            assert all(b"could not be dialled back" in answer for answer in answers)
            assert f"192.0.2.1:{port}".encode() in answers[0], "it is told which address was not believed"
            assert not used & set(hosts)
            await pair.assert_rejected("could not be dialled back", len(hosts))

    with caplog.at_level(logging.DEBUG):
        run(test)
    assert not [record for record in caplog.records if record.exc_info], "no traceback is logged"


def test_the_rate_of_new_addresses_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("priocast.network.tcp_dialler.LEARNT_BURST", 5)
    monkeypatch.setattr("priocast.network.tcp_dialler.LEARNT_PER_SECOND", 0.001)
    factory = NetworkFactory("tcp", tmp_path)

    async def test() -> None:
        async with honest_pair(factory) as pair:
            for number in range(20):
                reader, writer = await asyncio.open_connection(*factory.address("b"))
                writer.write(hello(f"c{number}", Address("", number + 1)))
                await reader.read(2000)
                writer.close()
            assert pair.b.rejections["too many learnt addresses"] >= 15
            assert len(pair.b._diallers._diallers) <= 6

    run(test)


def test_a_configured_name_that_cannot_be_encoded_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def dial_twice() -> None:
        network = TcpNetwork("a", free_address(), [Address("b" * 70 + ".example", 7401)])
        async with started(network):
            await wait_until(lambda: network.rejections["address cannot be used"] >= 2)
            assert set(network.rejections) == {"address cannot be used"}

    with caplog.at_level(logging.DEBUG):
        run(dial_twice)
    assert not [record for record in caplog.records if record.exc_info], "no traceback is logged"


def test_a_process_that_advertises_a_name_is_dialled_at_its_own_host() -> None:
    async def test() -> None:
        one = TcpNetwork("a", Address("127.0.0.1", free_address().port), [])
        async with started(one):
            port = free_address().port
            advertised = Address("b.example", port)
            named = TcpNetwork("b", Address("127.0.0.1", port), [one.address], advertise=advertised)
            async with started(named):
                [recorder] = open_all([one], "a")
                await recorder.wait_reaches("b")
                assert list(one._diallers._diallers) == [Address("127.0.0.1", port)]

    run(test)

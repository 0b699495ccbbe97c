"""What the runtime expects of any network: one suite over all of them."""

import asyncio
from pathlib import Path

import pytest

from priocast.core.errors import InvalidInput, InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.network_properties import NetworkProperties
from priocast.links.frame import Frame
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.network.interface import Network, Port, properties_of
from support.networks import KINDS, LinkEnd, NetworkFactory, Recorder, open_all, started
from support.waiting import run, wait_until

pytestmark = pytest.mark.parametrize("kind", KINDS)


def frame(body: bytes, channel: int = 0, sequence: int = 0) -> Frame:
    return Frame(channel, sequence, 0, 0, body)


def say(port: Port, to: str, *bodies: bytes) -> None:
    """Send frames to one peer at once."""
    port.send(to, [frame(body) for body in bodies])
    port.flush()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_every_process_reaches_every_other(kind: str, loop: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with NetworkFactory(kind, tmp_path).running("abc") as networks:
            recorders = [Recorder() for _ in networks]
            ports = [
                network.open("test", ProcessId(name, 5), recorder)
                for network, name, recorder in zip(networks, "abc", recorders, strict=True)
            ]
            for name, recorder in zip("abc", recorders, strict=True):
                await recorder.wait_reaches(*"abc".replace(name, ""))
            body = b"to all"
            for name, port in zip("abc", ports, strict=True):
                for sequence, peer in enumerate("abc".replace(name, "")):
                    port.send(peer, [Frame(9, sequence + 1, 3, 2**64 - 1, body)])
                port.flush()
            for recorder in recorders:
                await recorder.wait_received(2)
            for name, recorder in zip("abc", recorders, strict=True):
                assert {peer for peer, _ in recorder.received} == {
                    ProcessId(peer, 5) for peer in "abc".replace(name, "")
                }
                assert all(
                    (each.channel, each.acknowledged, each.selective, each.body) == (9, 3, 2**64 - 1, body)
                    for _, each in recorder.received
                )
            assert [each.sequence for peer, each in recorders[2].received if peer.name == "a"] == [2]
            assert not any(network.rejections for network in networks)

    run(test, loop=loop)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_bodies_of_any_size_arrive_unchanged(kind: str, loop: str, tmp_path: Path) -> None:
    sizes = [1, 127, 128, 1300, 1301, 1400, 65_536, 300_000, FRAME_BYTES_MAX]

    async def test() -> None:
        async with NetworkFactory(kind, tmp_path).running("ab") as networks:
            ends = [LinkEnd(networks[0], "a", "b"), LinkEnd(networks[1], "b", "a")]
            await ends[0].wait_reaches("b")
            await ends[1].wait_reaches("a")
            bodies = [bytes([size % 251]) * size for size in sizes]
            for body in bodies:
                ends[0].send(body)
            ends[1].send(b"the other way")
            await wait_until(lambda: len(ends[1].arrived) == len(bodies) and ends[0].arrived)
            assert ends[1].arrived == bodies
            assert ends[0].arrived == [b"the other way"]
            for end in ends:
                end.close()

    run(test, loop=loop)


def test_an_empty_body_arrives(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with NetworkFactory(kind, tmp_path).running("ab") as networks:
            [one, other] = open_all(networks, "ab", group="other")
            port = networks[0].open("test", ProcessId("a"), Recorder())
            recorder = Recorder()
            networks[1].open("test", ProcessId("b"), recorder)
            await one.wait_reaches("b")
            await other.wait_reaches("a")
            say(port, "b", b"", b"")
            await recorder.wait_received(2)
            assert recorder.bodies() == [b"", b""]

    run(test)


def test_frames_that_arrive_together_are_passed_on_together(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with NetworkFactory(kind, tmp_path).running("ab") as networks:
            first, second = Recorder(), Recorder()
            port = networks[0].open("test", ProcessId("a"), first)
            networks[1].open("test", ProcessId("b"), second)
            await first.wait_reaches("b")
            await second.wait_reaches("a")
            say(port, "b", *(b"%d" % number for number in range(20)))
            await second.wait_received(20)
            assert second.bodies() == [b"%d" % number for number in range(20)]
            assert second.calls == 1

    run(test)


def test_groups_that_share_a_network_are_separate(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with NetworkFactory(kind, tmp_path).running("ab") as networks:
            recorders: dict[str, Recorder] = {}
            ports: dict[str, Port] = {}
            for name, network in zip("ab", networks, strict=True):
                for group in ("test", "other"):
                    recorders[name + group] = Recorder()
                    ports[name + group] = network.open(group, ProcessId(name), recorders[name + group])
            for key, recorder in recorders.items():
                await recorder.wait_reaches("b" if key[0] == "a" else "a")
            say(ports["atest"], "b", b"for test")
            say(ports["aother"], "b", b"for other")
            await recorders["btest"].wait_received(1)
            await recorders["bother"].wait_received(1)
            assert recorders["btest"].bodies() == [b"for test"]
            assert recorders["bother"].bodies() == [b"for other"]

    run(test)


def test_frames_for_a_group_that_is_not_open_are_counted_and_dropped(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with NetworkFactory(kind, tmp_path).running("ab") as networks:
            one, other = open_all(networks, "ab")
            recorder = Recorder()
            lonely = networks[0].open("other", ProcessId("a"), recorder)
            await recorder.wait_reaches("b")
            await one.wait_reaches("b")
            say(lonely, "b", b"nobody is there")
            await wait_until(lambda: networks[1].rejections == {"unknown group": 1})
            assert not other.received

    run(test)


def test_a_group_can_be_reopened_with_another_incarnation(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with NetworkFactory(kind, tmp_path).running("ab") as networks:
            first, again, second = Recorder(), Recorder(), Recorder()
            port = networks[0].open("test", ProcessId("a", 1), first)
            networks[1].open("test", ProcessId("b", 1), second)
            await first.wait_reaches("b")
            await second.wait_reaches("a")
            with pytest.raises(InvalidOption, match="already has a port"):
                networks[0].open("test", ProcessId("a", 2), again)
            say(port, "b", b"first")
            port.close()
            port = networks[0].open("test", ProcessId("a", 2), again)
            assert again.reached == ["b"], "it is notified at once"
            say(port, "b", b"second")
            await second.wait_received(2)
            assert set(second.received) == {
                (ProcessId("a", 1), frame(b"first")),
                (ProcessId("a", 2), frame(b"second")),
            }
            assert not first.received

    run(test)


def test_a_network_serves_only_its_own_process(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with NetworkFactory(kind, tmp_path).running("a") as networks:
            with pytest.raises(InvalidInput, match="each process needs its own network"):
                networks[0].open("test", ProcessId("b"), Recorder())

    run(test)


async def check_exchange(one: Network, other: Network, names: str, incarnations: tuple[int, int]) -> None:
    """Open a group at both, wait until each reaches the other, and exchange frames in both directions."""
    recorders = Recorder(), Recorder()
    ports = [
        network.open("test", ProcessId(name, incarnation), recorder)
        for network, name, incarnation, recorder in zip(
            (one, other), names, incarnations, recorders, strict=True
        )
    ]
    for number, recorder in enumerate(recorders):
        await recorder.wait_reaches(names[1 - number])
    for number, port in enumerate(ports):
        # One side may not know the other yet and drop frames: repeat them, as a link would.
        while not recorders[1 - number].received:
            say(port, names[1 - number], b"hello")
            await asyncio.sleep(0.02)
    for number, recorder in enumerate(recorders):
        assert {peer for peer, _ in recorder.received} == {
            ProcessId(names[1 - number], incarnations[1 - number])
        }
    for port in ports:
        port.close()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_process_that_restarts_is_found_again(kind: str, loop: str, tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory(kind, tmp_path)
        stays = factory.network("a", "b")
        async with started(stays):
            for incarnation in (1, 2):
                restarts = factory.network("b", "", incarnation)
                async with started(restarts):
                    await check_exchange(stays, restarts, "ab", (incarnation, incarnation))

    run(test, loop=loop)


def test_a_process_that_is_not_a_configured_peer_is_found(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory(kind, tmp_path)
        async with factory.running("ab") as networks:
            joiner = factory.network("c", "ab")
            async with started(joiner):
                for network, name in zip(networks, "ab", strict=True):
                    await check_exchange(network, joiner, f"{name}c", (1, 1))

    run(test)


def test_sent_frames_are_transmitted_before_closing(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory(kind, tmp_path)
        leaves, stays = factory.network("a", "b"), factory.network("b", "a")
        async with started(leaves, stays):
            first, second = Recorder(), Recorder()
            port = leaves.open("test", ProcessId("a"), first)
            stays.open("test", ProcessId("b"), second)
            await first.wait_reaches("b")
            await second.wait_reaches("a")
            body = bytes(200_000)
            for sequence in range(5):
                port.send("b", [frame(body, 1, sequence + 1)])
            await leaves.close()
            await second.wait_received(5)
            assert second.bodies() == [body] * 5
            port.send("b", [frame(b"too late")])
            port.flush()

    run(test)


def test_frames_to_an_unknown_process_are_dropped(kind: str, tmp_path: Path) -> None:
    """They are not kept for a process that is found later, and a process is no peer of itself."""

    async def test() -> None:
        factory = NetworkFactory(kind, tmp_path)
        async with factory.running("a") as networks:
            first, second = Recorder(), Recorder()
            port = networks[0].open("test", ProcessId("a"), first)
            say(port, "b", b"lost")
            say(port, "a", b"to myself")
            joiner = factory.network("b", "a")
            async with started(joiner):
                joiner.open("test", ProcessId("b"), second)
                await first.wait_reaches("b")
                while not second.received:
                    say(port, "b", b"received")
                    await asyncio.sleep(0.02)
            assert {*second.bodies()} == {b"received"}
            assert first.received == []

    run(test)


def test_a_network_declares_its_properties(kind: str, tmp_path: Path) -> None:
    async def test() -> None:
        found = properties_of(NetworkFactory(kind, tmp_path).network("a"))
        assert found == NetworkProperties(error_detection=True, broadcast=kind == "multicast")

    run(test)

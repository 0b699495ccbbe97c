"""The final error of a join says why each address was not reached, and which options differ."""

import asyncio
from typing import Any

import pytest

import priocast
from priocast.core.identity import ProcessId
from priocast.network.codec import FrameKind, FrameWriter
from priocast.runtime.node import WithNode
from priocast.testing.addresses import free_addresses
from support.groups import Cluster, entered, quick
from support.waiting import run, wait_until


async def unreached(joining: WithNode[priocast.Group], reason: str) -> list[str]:
    """Try to join until the network gives this reason for a peer; returns all that it says of peers."""
    entering = asyncio.create_task(_enter(joining))
    network = joining.node.network
    await wait_until(
        lambda: any(reason in text for text in network.unreached()),
        lambda: f"{network.unreached()} instead of {reason}",
    )
    said = network.unreached()
    entering.cancel()
    await asyncio.wait([entering])
    return said


async def _enter(joining: WithNode[priocast.Group]) -> priocast.Group:
    return await joining.__aenter__()


def alone(transport: str, peer: str, listen: str | None = None, seconds: float = 60) -> Any:
    """A process that knows one peer only."""
    listen = listen or str(free_addresses(1)[0])
    keys = {"keys": {"test": bytes(32)}} if transport == "udp" else {}
    chosen: Any = {"transport": transport, **keys}
    return priocast.join("test", member="a", listen=listen, peers=[peer], start_seconds=seconds, **chosen)


def test_the_error_says_why_an_address_was_not_reached() -> None:
    async def test() -> None:
        (address,) = free_addresses(1)
        with pytest.raises(priocast.DeadlineExceeded) as failed:
            await alone("tcp", str(address), seconds=2).__aenter__()
        expected = f"(heard: nobody; missing: {address} (nothing listens there))"
        assert str(failed.value).endswith(expected)

    run(test)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("host", ["no-such-host.invalid", "-..-"])
def test_a_host_that_cannot_be_resolved(transport: str, host: str) -> None:
    async def test() -> None:
        said = await unreached(alone(transport, f"{host}:7401"), "no such host")
        assert said == [f"{host}:7401 (no such host)"]

    run(test)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_peer_that_is_this_process_itself(transport: str) -> None:
    async def test() -> None:
        (address,) = free_addresses(1)
        joining = alone(transport, str(address), str(address))
        said = await unreached(joining, "this process itself")
        assert said == [f"{address} (that is this process itself)"]

    run(test)


def test_a_peer_with_another_version() -> None:
    frame = bytearray(FrameWriter("", ProcessId("b", 0)).frame(FrameKind.REJECTED, b"go away"))
    frame[2] += 1

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(frame))
        await reader.read()
        writer.close()

    async def test() -> None:
        (address,) = free_addresses(1)
        async with await asyncio.start_server(answer, address.host, address.port):
            reason = f"another version of the wire format: the peer uses version {frame[2]}"
            (said,) = await unreached(alone("tcp", str(address)), "wire format")
            assert said.startswith(f"{address} ({reason}")

    run(test)


def test_a_peer_with_a_certificate_of_another_authority() -> None:
    async def test() -> None:
        ours, theirs = Cluster("tls", "ab"), Cluster("tls", "ab")
        arguments = theirs.arguments("b")
        async with priocast.open_node("b", **arguments):
            peers = {"peers": [arguments["listen"]]}
            joining = priocast.join("test", member="a", **(ours.arguments("a") | peers))
            said = await unreached(joining, "certificate")
            assert said == [f"{arguments['listen']} (certificate of another authority)"]

    run(test)


def test_options_that_differ_are_named_with_both_values(caplog: pytest.LogCaptureFixture) -> None:
    def logged() -> set[str]:
        return {record.getMessage() for record in caplog.records if record.name == "priocast.group"}

    async def test() -> None:
        cluster = Cluster("memory", "ab")
        async with entered(cluster.join("a", membership=quick(1)), cluster.join("b", membership=quick(1))):
            others = quick(1, slow_ms=5000.0, delivery="safe")
            with pytest.raises(priocast.JoinRejected) as failed:
                await cluster.join("c", membership=others).__aenter__()
            at_c = "delivery is 'agreed' here and 'safe' at c, slow_ms is 10000.0 here and 5000.0 at c"
            await wait_until(lambda: logged() == {f"rejected: c has other group options: {at_c}"})
        differences = "delivery is 'safe' here and 'agreed' at {0}, slow_ms is 5000.0 here and 10000.0 at {0}"
        texts = {f"{name} has other group options: {differences.format(name)}" for name in "ab"}
        assert str(failed.value) in texts

    run(test)

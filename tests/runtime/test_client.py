"""Clients: each request gets one position, whatever happens to the member that accepted it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

import priocast
from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.links.frame import Frame
from priocast.membership.datagrams import frame_of, read
from priocast.membership.packets import ClientReply, ClientRequest
from priocast.runtime.client import Client, open_client
from priocast.runtime.node import Node, WithNode
from priocast.testing.addresses import free_addresses
from support.waiting import PATIENCE_SECONDS, run, wait_until

NETWORKS = ("memory", "tcp", "udp")
KEYS = {"tickets": bytes(range(32))}
QUICK = priocast.MembershipOptions(founders=3, heartbeat_ms=50, failure_ms=500)


class Members:
    """A group of three that records what its applications deliver, and how clients reach it."""

    def __init__(self, network: str) -> None:
        self.nodes: dict[str, Node] = {}
        self.seen: dict[str, list[tuple[int, str]]] = {name: [] for name in "abc"}
        self.hub = priocast.MemoryHub()
        self._is_memory = network == "memory"
        self._way: dict[str, Any] = {"transport": "udp", "keys": KEYS} if network == "udp" else {}
        self._addresses = [str(address) for address in free_addresses(3)]
        self._reading: list[asyncio.Task[None]] = []

    async def start(self, stack: AsyncExitStack, **options: Any) -> None:
        for name, address in zip("abc", self._addresses, strict=True):
            peers = [peer for peer in self._addresses if peer != address]
            where: dict[str, Any] = {"listen": address, "peers": peers, **self._way}
            if self._is_memory:
                where = {"hub": self.hub, "size": 3}
            self.nodes[name] = await stack.enter_async_context(priocast.open_node(name, **where))
        joinings = [node.join("tickets", membership=QUICK, **options) for node in self.nodes.values()]
        groups = await asyncio.gather(*(joining.__aenter__() for joining in joinings))
        for joining in joinings:
            stack.push_async_callback(joining.__aexit__, RuntimeError, RuntimeError(), None)
        self._reading = [
            asyncio.create_task(self._read(name, group)) for name, group in zip("abc", groups, strict=True)
        ]
        for task in self._reading:
            stack.callback(task.cancel)

    async def _read(self, name: str, group: priocast.Group) -> None:
        async for event in group:
            if isinstance(event, priocast.Delivery):
                self.seen[name].append((event.position, event.message.payload.decode()))

    async def kill(self, name: str) -> None:
        """Kill a process: it sends nothing any more, not even a leave."""
        self._reading["abc".index(name)].cancel()
        await self.nodes[name].network.close()

    def client(self, name: str = "shop", incarnation: int | None = None) -> WithNode[Client]:
        if self._is_memory:
            return open_client("tickets", client=name, incarnation=incarnation, hub=self.hub)
        return open_client(
            "tickets", client=name, incarnation=incarnation, peers=self._addresses, **self._way
        )

    async def wait_seen(self, count: int, names: str = "abc") -> None:
        await wait_until(lambda: all(len(self.seen[name]) >= count for name in names))


@asynccontextmanager
async def members(network: str, **options: Any) -> AsyncIterator[Members]:
    async with AsyncExitStack() as stack:
        made = Members(network)
        await made.start(stack, **options)
        yield made


@pytest.mark.parametrize("network", NETWORKS)
def test_a_client_message_is_delivered_everywhere_at_the_returned_position(network: str) -> None:
    async def test() -> None:
        async with members(network) as group, group.client() as client:
            returned = [await client.send(f"{number}".encode()) for number in range(3)]
            urgent = await client.send(b"urgent", priocast.URGENT, timeout_seconds=PATIENCE_SECONDS)
            await group.wait_seen(4)
        assert [(position, text) for position, text in group.seen["a"]] == [
            *((position, str(number)) for number, position in enumerate(returned)),
            (urgent, "urgent"),
        ]
        assert group.seen["a"] == group.seen["b"] == group.seen["c"]

    run(test)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("prioritised", [True, False])
def test_requests_in_flight_keep_the_order_of_their_priority(network: str, prioritised: bool) -> None:
    async def test() -> None:
        async with members(network, prioritised=prioritised) as group, group.client() as client:
            async with asyncio.TaskGroup() as tasks:
                for number in range(300):
                    priority = priocast.URGENT if number % 3 == 0 else priocast.ROUTINE
                    tasks.create_task(client.send(f"{priority} {number}".encode(), priority))
            await group.wait_seen(300)
        for priority in (priocast.URGENT, priocast.ROUTINE):
            sent = [f"{priority} {number}" for number in range(300) if (number % 3 == 0) == (priority == 224)]
            assert [text for _, text in group.seen["b"] if text.startswith(f"{priority} ")] == sent
        assert group.seen["a"] == group.seen["b"] == group.seen["c"]

    run(test)


@pytest.mark.parametrize("network", NETWORKS)
def test_each_message_has_one_position_although_the_member_that_accepted_it_is_killed(network: str) -> None:
    async def test() -> None:
        async with members(network) as group, group.client() as client:
            await client.send(b"first")
            taker = client.members[0]
            others = "abc".replace(taker, "")
            sending = [asyncio.create_task(client.send(f"{number}".encode())) for number in range(50)]
            await group.wait_seen(5, others)
            await group.kill(taker)
            more = [asyncio.create_task(client.send(f"{number}".encode())) for number in range(50, 60)]
            positions = await asyncio.gather(*sending, *more)
            await group.wait_seen(61, others)
            await client.send(b"last")
            await group.wait_seen(62, others)
        one, other = (group.seen[name] for name in others)
        assert one == other
        assert [text for _, text in one] == ["first", *map(str, range(60)), "last"]
        by_text = {text: position for position, text in one}
        assert all(position in (None, by_text[str(number)]) for number, position in enumerate(positions))

    run(test)


def test_a_message_has_one_position_although_the_reply_was_lost_and_it_was_sent_again() -> None:
    async def test() -> None:
        async with members("memory") as group, group.client() as client:
            taker = client.members[0]
            group.hub.cut(taker, "shop")
            sending = [asyncio.create_task(client.send(f"{number}".encode())) for number in range(20)]
            await group.wait_seen(20)
            assert await asyncio.gather(*sending) == [None] * 20
            assert await client.send(b"last") == 20
            await group.wait_seen(21)
        assert [text for _, text in group.seen["a"]] == [*map(str, range(20)), "last"]
        assert group.seen["a"] == group.seen["b"] == group.seen["c"]

    run(test)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_client_that_repeats_the_requests_of_an_earlier_one_gets_no_second_positions(network: str) -> None:
    """The earlier process ended after three of five: the later one sends all of them again."""

    async def test() -> None:
        async with members(network) as group:
            for count in (3, 5, 5):
                async with group.client(incarnation=2**62 - 1) as client:
                    await asyncio.gather(*(client.send(b"seat %d" % number) for number in range(count)))
            await group.wait_seen(5)
            assert [payload for _, payload in group.seen["a"]] == [f"seat {number}" for number in range(5)]

    run(test)


@pytest.mark.parametrize("network", NETWORKS)
def test_only_the_recipients_deliver_a_client_message(network: str) -> None:
    async def test() -> None:
        async with members(network) as group, group.client() as client:
            await client.send(b"for b", to=["b"], safe=True)
            await client.send(b"for all")
            await group.wait_seen(1)
            await group.wait_seen(2, "b")
        assert [text for _, text in group.seen["b"]] == ["for b", "for all"]
        assert [text for _, text in group.seen["a"]] == [text for _, text in group.seen["c"]] == ["for all"]

    run(test)


def test_a_timeout_names_the_members_that_were_asked() -> None:
    async def test() -> None:
        hub = priocast.MemoryHub()
        async with open_client("tickets", client="shop", hub=hub) as client:
            with pytest.raises(priocast.DeadlineExceeded, match="no member could be reached"):
                await client.send(b"x", timeout_seconds=0.05)
            async with priocast.open_node("a", hub=hub, size=1):
                with pytest.raises(
                    priocast.DeadlineExceeded, match=r"timed out after 1 s: .* replied \(asked: a\)"
                ):
                    await client.send(b"x", timeout_seconds=1)

    run(test)


def test_invalid_sends_are_rejected_at_the_call() -> None:
    async def test() -> None:
        async with members("memory") as group, group.client() as client:
            with pytest.raises(priocast.PriorityOutOfRange):
                await client.send(b"x", 256)
            with pytest.raises(priocast.InvalidInput, match="a payload must be bytes"):
                await client.send("x")  # type: ignore[arg-type]
            with pytest.raises(priocast.InvalidInput, match="to must be a list"):
                await client.send(b"x", to="a")
            assert await client.send(b"x") is not None
        with pytest.raises(priocast.GroupClosed, match=r"the client shop of group .tickets. was closed"):
            await client.send(b"x")

    run(test)
    with pytest.raises(priocast.InvalidInput, match="needs peers="):
        open_client("tickets", client="shop")
    with pytest.raises(priocast.InvalidInput, match="no route to"):
        open_client("tickets", client="shop", peers=["no.such.host.invalid:7401"])


class ScriptedMember:
    """A scripted member: it records requests, and replies when the test says so."""

    def __init__(self, node: Node) -> None:
        self.requests: list[ClientRequest] = []
        self._port = node.network.open("tickets", ProcessId(node.name, 1), self)

    def reachable(self, peer: str, role: Role = Role.MEMBER) -> None:
        pass

    def hears(self, peer: str) -> bool:
        return False

    def failed(self, error: priocast.PriocastError) -> None:
        raise error

    def frames_received(self, peer: ProcessId, frames: list[Frame], role: Role = Role.MEMBER) -> None:
        assert role is Role.CLIENT
        for frame in frames:
            request = read(peer, frame)
            assert isinstance(request, ClientRequest)
            self.requests.append(request)

    def reply(self, number: int, position: int, reason: str = "") -> None:
        frame = frame_of(ClientReply(number, priocast.ROUTINE, position, reason))
        self._port.send("shop", [frame])

    async def wait_requests(self, count: int) -> list[int]:
        await wait_until(lambda: len(self.requests) >= count)
        return [request.number for request in self.requests]


@asynccontextmanager
async def scripted_members(*names: str) -> AsyncIterator[tuple[Client, list[ScriptedMember]]]:
    hub = priocast.MemoryHub()
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(priocast.open_node(name, hub=hub, size=1)) for name in names]
        made = [ScriptedMember(node) for node in nodes]
        yield await stack.enter_async_context(open_client("tickets", client="shop", hub=hub)), made


def test_a_request_without_a_reply_goes_to_the_next_member_and_either_reply_counts() -> None:
    async def test() -> None:
        async with scripted_members("a", "b") as (client, (a, b)):
            sending = [asyncio.create_task(client.send(text)) for text in (b"1", b"2")]
            assert await a.wait_requests(2) == [1, 2]
            assert await b.wait_requests(2) == [1, 2]
            b.reply(1, -1)
            a.reply(2, 8)
            assert await asyncio.gather(*sending) == [None, 8]
            third = asyncio.create_task(client.send(b"3"))
            assert await b.wait_requests(3) == [1, 2, 3]
            b.reply(3, 9)
            assert await third == 9
            assert b.requests[-1].settled == 2

    run(test)


def test_a_reply_is_a_promise_so_requests_are_safe_unless_the_caller_says_otherwise() -> None:
    async def test() -> None:
        async with scripted_members("a") as (client, (a,)):
            sending = asyncio.gather(client.send(b"1"), client.send(b"2", safe=False))
            await a.wait_requests(2)
            a.reply(1, 0)
            a.reply(2, 1)
            assert list(await sending) == [0, 1]
            assert [request.scope.safe for request in a.requests[:2]] == [True, False]

    run(test)


def test_a_request_that_timed_out_does_not_block_later_ones() -> None:
    async def test() -> None:
        async with scripted_members("a") as (client, (a,)):
            first, second, third = (asyncio.create_task(client.send(text)) for text in (b"1", b"2", b"3"))
            await a.wait_requests(3)
            second.cancel()
            await asyncio.wait([second])
            a.reply(1, 0)
            assert await first == 0
            assert await a.wait_requests(4) == [1, 2, 3, 3]
            assert a.requests[-1].settled == 2
            a.reply(3, 1)
            assert await third == 1

    run(test)


def test_a_rejection_is_an_error_and_an_invalid_reply_is_ignored() -> None:
    async def test() -> None:
        async with scripted_members("a") as (client, (a,)):
            sending = asyncio.create_task(client.send(b"1"))
            await a.wait_requests(1)
            a.reply(7, 7)
            a._port.send("shop", [Frame(0, 0, 0, 0, b"\xc1")])
            a.reply(1, -1, "not here")
            with pytest.raises(priocast.PeerFault, match="a rejected the message: not here"):
                await sending

    run(test)


def test_the_number_of_requests_in_flight_is_limited() -> None:
    async def test() -> None:
        async with scripted_members("a") as (client, (a,)):
            sending = [asyncio.create_task(client.send(b"x" * 400_000)) for _ in range(5)]
            assert await a.wait_requests(2) == [1, 2]
            for number in range(1, 6):
                await a.wait_requests(number)
                assert len(a.requests) <= number + 1
                a.reply(number, number)
                await sending[number - 1]

    run(test)

"""State transfer: a new member continues from the group's state, at a known position in the order."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

import priocast
from support.groups import NETWORKS, Cluster, Reader, entered, quick, reading_with
from support.waiting import run, wait_until

over_every_network = pytest.mark.parametrize("network", NETWORKS)


class Notebook:
    """An application whose state is the list of all delivered messages."""

    def __init__(self) -> None:
        self.pages: list[bytes] = []
        self.when_asked: Callable[[], None] = lambda: None
        self.saved = 0
        self.loaded = 0

    @property
    def state(self) -> priocast.State:
        return priocast.State(self.save, self.load)

    def save(self) -> bytes:
        self.saved += 1
        self.when_asked()
        return b"\n".join(self.pages)

    def load(self, data: bytes) -> None:
        self.loaded += 1
        self.pages = data.split(b"\n") if data else []


class Scribe(Reader):
    """Reads a group and appends all messages to a notebook."""

    def __init__(self, group: priocast.Group, notebook: Notebook) -> None:
        super().__init__(group)
        self.notebook = notebook

    def on_delivery(self, delivery: priocast.Delivery) -> None:
        self.notebook.pages.append(delivery.message.payload)


def scribing(
    notebooks: dict[str, Notebook], *members: priocast.Group
) -> AbstractAsyncContextManager[list[Scribe]]:
    """Let each member append to the notebook of its name."""
    return reading_with(lambda group: Scribe(group, notebooks[group.me.name]), *members)


def _pages(start: int, stop: int, size: int = 4) -> list[bytes]:
    return [str(number).zfill(size).encode() for number in range(start, stop)]


@over_every_network
@pytest.mark.parametrize("size", [4, 5_000], ids=["small", "in many pieces"])
def test_a_new_member_receives_the_state_and_then_what_follows(network: str, size: int) -> None:
    async def test() -> None:
        cluster, notebooks = Cluster(network, "abc"), {name: Notebook() for name in "abc"}
        founders = [cluster.join(name, founders=2, state=notebooks[name].state) for name in "ab"]
        async with entered(*founders) as members, scribing(notebooks, *members) as scribes:
            await members[0].broadcast_many(_pages(0, 200, size))
            await scribes[0].wait_payloads(*_pages(199, 200, size))
            joining = cluster.join("c", founders=2, state=notebooks["c"].state)
            async with entered(joining) as late, scribing(notebooks, *late) as (scribe,):
                await members[1].broadcast_many(_pages(200, 300, size))
                await wait_until(lambda: all(len(notebooks[name].pages) == 300 for name in "ac"))
                assert notebooks["c"].pages == notebooks["a"].pages == _pages(0, 300, size)
                (restored,) = [event for event in scribe.events if isinstance(event, priocast.Restored)]
                assert 200 <= restored.position <= 300
                assert len(scribe.deliveries) == 300 - restored.position
                assert [type(event) for event in scribe.events[:2]] == [
                    priocast.ViewChange,
                    priocast.Restored,
                ]
                assert notebooks["c"].loaded == 1
                assert late[0].status().state == "active"
        assert notebooks["a"].loaded == notebooks["b"].loaded == 0, "founders start without a state"

    run(test)


def test_an_empty_state_is_a_state() -> None:
    async def test() -> None:
        cluster, notebooks = Cluster("memory", "abc"), {name: Notebook() for name in "abc"}
        joinings = [cluster.join(name, founders=2, state=notebooks[name].state) for name in "abc"]
        async with (
            entered(*joinings[:2]) as members,
            scribing(notebooks, *members),
            entered(joinings[2]) as late,
            scribing(notebooks, *late) as (scribe,),
        ):
            await wait_until(lambda: any(isinstance(e, priocast.Restored) for e in scribe.events))
            assert scribe.events[1] == priocast.Restored(0, 0)

    run(test)


def test_when_the_donor_fails_another_member_sends_the_state() -> None:
    async def test() -> None:
        cluster, notebooks = Cluster("memory", "abcd"), {name: Notebook() for name in "abcd"}
        membership = quick(3)
        joinings = [cluster.join(name, membership=membership, state=notebooks[name].state) for name in "abcd"]
        async with entered(*joinings[:3]) as members, scribing(notebooks, *members) as scribes:
            await members[0].broadcast_many(_pages(0, 50))
            await scribes[2].wait_payloads(*_pages(49, 50))
            notebooks["a"].when_asked = lambda: silence(cluster, "a")
            async with entered(joinings[3]) as late, scribing(notebooks, *late):
                await wait_until(lambda: len(notebooks["d"].pages) == 50)
                assert notebooks["d"].pages == _pages(0, 50)
                assert notebooks["a"].saved == 1
                assert notebooks["b"].saved + notebooks["c"].saved == 1

    run(test)


def silence(cluster: Cluster, name: str) -> None:
    """Kill a process: it sends nothing any more."""
    for other in cluster.names.replace(name, ""):
        cluster.hub.cut(name, other)
        cluster.hub.cut(other, name)


def test_a_member_that_rejoins_after_a_partition_receives_the_state_again() -> None:
    async def test() -> None:
        cluster, notebooks = Cluster("memory", "abc"), {name: Notebook() for name in "abc"}
        membership = quick(3)
        joinings = [cluster.join(name, membership=membership, state=notebooks[name].state) for name in "abc"]
        async with entered(*joinings) as members, scribing(notebooks, *members) as scribes:
            await members[0].broadcast_many(_pages(0, 10))
            await scribes[2].wait_payloads(*_pages(9, 10))
            silence(cluster, "c")
            await scribes[0].wait_members("ab")
            await members[0].broadcast_many(_pages(10, 20))
            await scribes[0].wait_payloads(*_pages(19, 20))
            cluster.hub.heal()
            await wait_until(lambda: notebooks["c"].pages == _pages(0, 20))
            await members[2].broadcast(b"back")
            await wait_until(lambda: all(each.pages[-1:] == [b"back"] for each in notebooks.values()))
            assert notebooks["c"].pages == notebooks["a"].pages
            assert notebooks["c"].loaded == 1

    run(test)


def test_members_with_and_without_state_reject_each_other() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "abc")
        async with entered(*(cluster.join(name, founders=2, state=Notebook().state) for name in "ab")):
            with pytest.raises(priocast.PeerFault, match="has other group options"):
                async with cluster.join("c", founders=2):
                    pass

    run(test)


def test_a_member_that_has_a_part_of_the_state_gets_the_rest() -> None:
    async def test() -> None:
        notebooks = {name: Notebook() for name in "ab"}
        cluster = Cluster("memory", "ab")
        asked: list[bytes] = []

        def save_since(base: bytes) -> bytes:
            asked.append(base)
            return b"\n".join(notebooks["a"].pages[int(base) :])

        def load(data: bytes) -> None:
            notebooks["b"].pages += data.split(b"\n")

        donor = priocast.State(notebooks["a"].save, notebooks["a"].load, save_since=save_since)
        arguments = cluster.arguments("a")
        async with (
            priocast.join("test", member="a", state=donor, membership=quick(1), **arguments) as a,
            scribing(notebooks, a),
        ):
            for page in _pages(0, 5):
                await a.broadcast(page)
            await wait_until(lambda: len(notebooks["a"].pages) == 5)
            notebooks["b"].pages = _pages(0, 3)
            state = priocast.State(notebooks["b"].save, load, base=lambda: b"3")
            async with (
                priocast.join("test", member="b", state=state, membership=quick(2), **arguments) as b,
                scribing(notebooks, b),
            ):
                await wait_until(lambda: notebooks["b"].pages == _pages(0, 5))
        assert set(asked) == {b"3"} and not notebooks["a"].saved

    run(test)

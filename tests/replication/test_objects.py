"""Replicated objects: methods, types, nesting, and the errors of classes that cannot be replicated."""

import asyncio

import msgspec
import pytest

import priocast
from priocast.replication.objects.object_machine import ObjectMachine
from replication.object_copies import copies
from support.groups import Cluster, quick
from support.waiting import run, wait_until


class Seat(msgspec.Struct, frozen=True):
    row: int
    number: int


class Hall(priocast.ReplicatedObject):
    """Seats that are sold once; its parts are replicated with it."""

    sold: dict[int, Seat]

    def __init__(self) -> None:
        self.sold = {}
        self.income = priocast.ReplicatedCounter()
        self.notes: priocast.ReplicatedDict[str, list[int]] = priocast.ReplicatedDict()

    @priocast.replicated
    def sell(self, seat: Seat, price: int = 10) -> int:
        """Sell a seat; return how many are sold."""
        assert isinstance(seat, Seat)
        if seat in self.sold.values():
            raise LookupError(f"seat {seat.number} is sold")
        self.sold[len(self.sold)] = seat
        self.income.add.apply(price)
        return len(self.sold)

    @priocast.replicated(priority=priocast.URGENT)
    def close(self) -> tuple[int, int, bool]:
        return self.context.priority, self.context.slot, self.context.time_ns > 0

    @priocast.replicated
    def fill(self, row: int, left: int) -> int:
        self.sold[len(self.sold)] = Seat(row, left)
        return self.fill.again(row, left - 1) if left > 1 else len(self.sold)

    @priocast.query
    def seats(self) -> list[Seat]:
        return list(self.sold.values())


def test_methods_are_executed_everywhere_and_return_typed_results() -> None:
    async def test() -> None:
        async with copies(Hall(), Hall(), Hall()) as (a, b, c):
            assert await a.sell(Seat(1, 2)) == 1
            assert await b.sell(Seat(1, 3), price=20) == 2
            with pytest.raises(priocast.CommandFailed, match="LookupError: seat 3 is sold") as raised:
                await c.sell(Seat(1, 3))
            assert raised.value.kind == "LookupError"
            assert await c.seats() == [Seat(1, 2), Seat(1, 3)]
            assert await a.income.value() == 30, "the parts change with the whole"
            assert await b.close() == (priocast.URGENT, 0, True)
            assert await b.close.at(priority=5)() == (5, 0, True)
            await c.notes.set("row 1", [2, 3])
            assert await a.notes.get("row 1") == [2, 3]
            assert await c.seats.at(staleness_seconds=60)() == await a.seats()

    run(test)


def test_a_long_method_is_executed_in_slots() -> None:
    async def test() -> None:
        async with copies(Hall(), Hall()) as (a, b):
            filling = asyncio.create_task(a.fill(7, 300))
            await wait_until(lambda: len(a.sold) > 5)
            await b.sell.at(priority=priocast.URGENT)(Seat(1, 1))
            assert not filling.done()
            assert await filling == 301
            assert await b.seats() == list(a.sold.values())

    run(test)


def test_a_member_that_joins_later_has_the_state_of_all_parts() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "abc")
        async with copies(Hall(), Hall(), cluster=cluster) as (a, _):
            await a.sell(Seat(1, 2))
            await a.notes.set("x", [1])
            late = priocast.replicate(
                "test", Hall(), member="c", membership=quick(2), **cluster.arguments("c")
            )
            async with late as c:
                await c.replica.wait_current()
                assert (c.sold, c.income.local, dict(c.notes.local)) == ({0: Seat(1, 2)}, 10, {"x": [1]})
                assert await c.sell(Seat(1, 3)) == 2

    run(test)


def test_what_a_query_returns_is_a_copy() -> None:
    async def test() -> None:
        async with copies(priocast.ReplicatedDict[str, list[int]]()) as (store,):
            await store.set("x", [1])
            found = await store.get("x")
            assert found == [1]
            found.append(2)
            assert await store.get("x") == [1]

    run(test)


class Tagged(priocast.ReplicatedObject):
    def __init__(self) -> None:
        self.tags = {"x"}


class Typed(priocast.ReplicatedObject):
    tags: set[str]
    pair: tuple[int, str]

    def __init__(self) -> None:
        self.tags = {"x"}
        self.pair = (1, "y")


class Unsaved(priocast.ReplicatedObject):
    def __init__(self) -> None:
        self.thing = object()


def test_a_state_that_a_snapshot_would_change_is_rejected() -> None:
    with pytest.raises(
        priocast.InvalidInput, match=r"tags of Tagged is \['x'\] after a snapshot.*'tags: set'"
    ):
        ObjectMachine(Tagged())
    with pytest.raises(priocast.InvalidInput, match="the state of Unsaved cannot be saved"):
        ObjectMachine(Unsaved())
    other = Typed()
    other.tags, other.pair = set(), (0, "")
    ObjectMachine(other).restore(ObjectMachine(Typed()).snapshot())
    assert (other.tags, other.pair) == ({"x"}, (1, "y"))


def test_methods_that_cannot_be_replicated_are_rejected() -> None:
    with pytest.raises(priocast.InvalidInput, match=r"it has \*numbers"):

        @priocast.replicated
        def add(self: object, *numbers: int) -> None: ...

    with pytest.raises(priocast.InvalidInput, match="must not wait"):

        @priocast.replicated
        async def wait(self: object) -> None: ...


def test_calls_that_cannot_be_made_are_rejected_before_anything_is_broadcast() -> None:
    async def test() -> None:
        hall = Hall()
        with pytest.raises(priocast.GroupClosed, match="this Hall is not replicated"):
            await hall.sell(Seat(1, 1))
        with pytest.raises(priocast.InvalidInput, match="within replicated methods only"):
            _ = hall.context
        with pytest.raises(priocast.InvalidInput, match="its class must extend ReplicatedObject"):
            priocast.replicate("g", object(), member="a", hub=priocast.MemoryHub(), size=1)  # type: ignore[type-var]
        async with copies(hall) as (a,):
            position = a.replica.position
            with pytest.raises(TypeError, match="missing a required argument: 'seat'"):
                await a.sell()  # type: ignore[call-arg]
            with pytest.raises(priocast.InvalidInput, match="an argument of sell cannot be encoded"):
                await a.sell(object())  # type: ignore[arg-type]
            assert a.replica.position == position
            with pytest.raises(priocast.CommandFailed, match="ValidationError: Expected `object`, got `str`"):
                await a.sell("seat")  # type: ignore[arg-type]

    run(test)


def test_an_object_within_two_others_is_rejected() -> None:
    hall = Hall()
    hall.other = hall.income  # type: ignore[attr-defined]
    with pytest.raises(priocast.InvalidInput, match="a ReplicatedCounter is contained twice, as 'other' too"):
        ObjectMachine(hall)


def test_one_process_may_replicate_objects_in_several_groups() -> None:
    async def test() -> None:
        async with (
            priocast.open_node("a", hub=priocast.MemoryHub(), size=1) as node,
            priocast.replicate_on(node, "one", priocast.ReplicatedCounter()) as one,
            priocast.replicate_on(node, "two", priocast.ReplicatedCounter(5)) as two,
        ):
            assert (await one.add(), await two.add(2)) == (1, 7)

    run(test)

"""The status of a group says how the adaptive order shares its slots."""

from support.groups import groups
from support.waiting import run


def test_slots_are_those_of_the_adaptive_order() -> None:
    async def test() -> None:
        async with groups("memory", 2, order="adaptive") as members:
            slots = members[0].status().slots
            assert slots is not None
            assert (slots.distribution, slots.weights) == ("0.0", {"a": 1, "b": 1})

    run(test)


def test_other_orders_have_none() -> None:
    async def test() -> None:
        async with groups("memory", 1) as members:
            assert members[0].status().slots is None

    run(test)

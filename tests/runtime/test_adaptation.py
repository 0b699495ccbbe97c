"""The order `auto`: which member changes the order, when, and how often."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

import priocast
from priocast.advice.advisor import Advice, advise
from priocast.advice.situation import Situation
from priocast.runtime import adaptation as adaptation_module
from priocast.runtime.adaptation import MEASUREMENTS_NEEDED, PAUSE_SECONDS, Adaptation
from support.groups import entered, groups, reading
from support.waiting import run, wait_until

SECOND = 1_000_000_000


def advisor(seen: list[Situation], choice: Callable[[], str]) -> Callable[[Situation], Advice]:
    """Advice that always prefers one order."""

    def advised(situation: Situation) -> Advice:
        seen.append(situation)
        advice = advise(situation)
        ranking = [
            msgspec.structs.replace(each, excluded="", delivery_ms=1.0 if each.order == choice() else 2.0)
            for each in advice.ranking
        ]
        return msgspec.structs.replace(advice, choice=choice(), ranking=ranking, why=["because"])

    return advised


def test_the_first_order_suits_the_size_of_the_group() -> None:
    async def test() -> None:
        async with groups("memory", 3, order="auto") as members:
            for member in members:
                status = member.status()
                assert status.order == "sequencer-ub"
                assert status.advice.startswith("starts with sequencer-ub")

    run(test)


def test_a_member_with_another_order_than_auto_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        hub = priocast.MemoryHub()
        founders = [priocast.join("test", member=name, hub=hub, size=2, order="auto") for name in "ab"]
        async with entered(*founders):
            with pytest.raises(priocast.PriocastError, match=r"here and 'auto' at [ab]"):
                async with priocast.join(
                    "test", member="c", hub=hub, size=2, start_seconds=5, policy="primary"
                ):
                    pass

    run(test)


def test_the_coordinator_changes_the_order_after_several_measurements_and_then_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        choice = "token-ring"
        seen: list[Situation] = []
        monkeypatch.setattr(adaptation_module, "advise", advisor(seen, lambda: choice))
        async with groups("memory", 3, order="auto") as members, reading(*members):
            drivers = [member._driver for member in members]
            follow = [Adaptation(driver) for driver in drivers]
            now = 0

            def look(times: int) -> None:
                nonlocal now
                for _ in range(times):
                    now += SECOND
                    for each in follow:
                        each.step(now)

            look(MEASUREMENTS_NEEDED)
            assert members[0].status().advice == "sequencer-ub stays: because"
            assert members[1].status().advice == ""
            look(1)
            assert members[0].status().advice == "changes from sequencer-ub to token-ring: because"
            await wait_until(lambda: all(member.status().order == "token-ring" for member in members))
            look(3)
            assert members[0].status().advice == "token-ring suits the load: because"
            choice = "sequencer-bb"
            look(MEASUREMENTS_NEEDED + 5)
            await asyncio.sleep(0.05)
            assert members[0].status().order == "token-ring", "the last change was too recent"
            now += int(PAUSE_SECONDS * SECOND)
            look(1)
            await wait_until(lambda: members[0].status().order == "sequencer-bb")

    run(test)


def test_a_short_burst_of_load_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        choices = ["token-ring"] * (MEASUREMENTS_NEEDED - 1) + ["sequencer-ub"]
        looks = 0
        monkeypatch.setattr(adaptation_module, "advise", advisor([], lambda: choices[looks % len(choices)]))
        async with groups("memory", 1, order="auto") as (member,):
            follow = Adaptation(member._driver)
            for looks in range(5 * len(choices)):
                follow.step((looks + 1) * SECOND)
            assert member.status().views == 1
            assert member.status().order == "sequencer-ub"

    run(test)


def test_the_load_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        seen: list[Situation] = []
        monkeypatch.setattr(adaptation_module, "advise", advisor(seen, lambda: "sequencer-ub"))
        async with groups("memory", 3, order="auto", prioritised=False) as members:
            async with reading(*members) as readers:
                follow = Adaptation(members[0]._driver)
                await members[2].broadcast(b"before")
                await readers[0].wait_payloads(b"before")
                follow.step(10 * SECOND)
                for number in range(100):
                    await members[number % 2].broadcast(b"%03d" % number + b"." * 997)
                await readers[0].wait_payloads(b"099" + b"." * 997)
                follow.step(12 * SECOND)
            [situation] = seen
            assert (situation.members, situation.rate, situation.senders) == (3, 50.0, 2)
            assert 900 < situation.payload_bytes < 1200
            assert situation.priorities == "none"
            assert situation.rtt_ms > 0

    run(test)


def test_a_new_view_restarts_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        seen: list[Situation] = []
        monkeypatch.setattr(adaptation_module, "advise", advisor(seen, lambda: "sequencer-ub"))
        async with groups("memory", 2, order="auto") as members, reading(*members):
            follow = Adaptation(members[0]._driver)
            follow.step(1 * SECOND)
            members[0].change_order("token-ring")
            await wait_until(lambda: members[0].status().order == "token-ring")
            follow.step(2 * SECOND)
            assert seen == []
            follow.step(3 * SECOND)
            assert len(seen) == 1

    run(test)

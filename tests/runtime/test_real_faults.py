"""Real processes that are killed, stopped, restarted and cut off under load; Spark verifies the traces."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from priocast.membership.options import MembershipOptions
from priocast.pipeline.study import verify_runs
from priocast.study.living import LivingGroup
from priocast.study.processes import free_addresses
from support.namespaces import Namespaces, namespaces, unavailable
from support.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.processes, pytest.mark.spark, pytest.mark.xdist_group("real faults")]

FAILURE_SECONDS = 1.0
NAMES = "abcd"


def options(founders: int, **changes: str) -> MembershipOptions:
    """Failures are noticed soon, so that the test need not wait long."""
    return MembershipOptions(
        founders=founders,
        heartbeat_ms=60,
        failure_ms=1000 * FAILURE_SECONDS,
        slow_ms=10_000,
        **changes,  # type: ignore[arg-type]  # the few words that a test names
    )


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all runs of this module leave their traces, for one verification of all of them at the end."""
    return tmp_path_factory.mktemp("traces")


def on_loopback(
    traces: Path, run: str, befall: Callable[[LivingGroup], Awaitable[None]], **changes: str
) -> None:
    """Let something befall a group of four while it works."""

    async def test() -> None:
        addresses = dict(zip(NAMES, map(str, free_addresses(len(NAMES))), strict=True))
        async with LivingGroup(
            addresses,
            run=run,
            membership=options(len(NAMES), **changes),
            trace=traces / run,
            state_directory=traces / run / "state",
        ) as group:
            await group.start(*NAMES)
            await group.wait_view(NAMES, PATIENCE_SECONDS)
            await befall(group)
            await group.finish(PATIENCE_SECONDS)

    asyncio.run(test())


@pytest.mark.parametrize("delivery", ["agreed", "safe"])
def test_members_and_coordinators_that_are_killed_and_started_again(traces: Path, delivery: str) -> None:
    async def befall(group: LivingGroup) -> None:
        for victim in ("b", "a"):
            await asyncio.sleep(0.3)
            group.members[victim].send_signal(signal.SIGKILL)
            await group.wait_view(NAMES.replace(victim, ""), PATIENCE_SECONDS)
            await group.start(victim)
            await group.wait_view(NAMES, PATIENCE_SECONDS)

    on_loopback(traces, f"killed-{delivery}", befall, delivery=delivery)


def test_a_restart_within_the_timeout_is_another_life(traces: Path) -> None:
    async def befall(group: LivingGroup) -> None:
        before = group.members["c"].view
        group.members["c"].send_signal(signal.SIGKILL)
        await group.start("c")
        await group.wait_view(NAMES, PATIENCE_SECONDS)
        after = group.members["a"].view
        assert before is not None
        assert after is not None
        incarnations = [
            member for view in (before, after) for member in view.members if member.startswith("c#")
        ]
        assert len(set(incarnations)) == 2

    on_loopback(traces, "restarted", befall)


def test_a_member_that_stands_still_for_less_than_the_timeout_stays(traces: Path) -> None:
    async def befall(group: LivingGroup) -> None:
        before = group.members["a"].view
        group.members["c"].send_signal(signal.SIGSTOP)
        await asyncio.sleep(0.3 * FAILURE_SECONDS)
        group.members["c"].send_signal(signal.SIGCONT)
        await asyncio.sleep(2 * FAILURE_SECONDS)
        assert group.members["a"].view == before, "no view changed"

    on_loopback(traces, "paused", befall)


def test_a_member_that_stands_still_for_more_than_the_timeout_comes_back(traces: Path) -> None:
    async def befall(group: LivingGroup) -> None:
        group.members["c"].send_signal(signal.SIGSTOP)
        await group.wait_view("abd", PATIENCE_SECONDS)
        group.members["c"].send_signal(signal.SIGCONT)
        await group.wait_view(NAMES, PATIENCE_SECONDS)
        assert "stopped" in [report.kind for report in group.members["c"].reports], "it was told"

    on_loopback(traces, "stopped", befall)


def in_namespaces(
    traces: Path, run: str, befall: Callable[[LivingGroup, Namespaces], Awaitable[None]], policy: str
) -> None:
    """Let something befall the network between five members while they work."""
    reason = unavailable()
    if reason:
        pytest.skip(f"no network namespaces can be made here: {reason}")

    async def test(network: Namespaces) -> None:
        async with LivingGroup(
            network.addresses,
            run=run,
            membership=options(5, policy=policy),
            trace=traces / run,
            state_directory=traces / run / "state",
            within=network.within,
        ) as group:
            await group.start(*"abcde")
            await group.wait_view("abcde", PATIENCE_SECONDS)
            await befall(group, network)
            network.heal()
            await group.wait_view("abcde", PATIENCE_SECONDS)
            await group.finish(PATIENCE_SECONDS, alike=policy == "primary")

    with namespaces("abcde") as network:
        asyncio.run(test(network))


def test_the_majority_goes_on_in_a_primary_group_that_is_cut(traces: Path) -> None:
    async def befall(group: LivingGroup, network: Namespaces) -> None:
        before = group.members["a"].view
        network.cut_apart("ab", "cde")
        await group.wait_view("cde", PATIENCE_SECONDS)
        await asyncio.sleep(FAILURE_SECONDS)
        assert group.members["a"].view == before, "the minority installs nothing"

    in_namespaces(traces, "cut-primary", befall, "primary")


def test_both_sides_go_on_in_a_partitionable_group_that_is_cut(traces: Path) -> None:
    async def befall(group: LivingGroup, network: Namespaces) -> None:
        network.cut_apart("ab", "cde")
        await group.wait_view("cde", PATIENCE_SECONDS)
        await group.wait_view("ab", PATIENCE_SECONDS)
        await asyncio.sleep(FAILURE_SECONDS)

    in_namespaces(traces, "cut-partitionable", befall, "partitionable")


@pytest.mark.parametrize("policy", ["primary", "partitionable"])
def test_two_members_that_cannot_hear_each_other_are_never_in_one_view_for_long(
    traces: Path, policy: str
) -> None:
    async def befall(group: LivingGroup, network: Namespaces) -> None:
        network.cut("a", "c")
        await group.wait(
            lambda: not {"a", "c"} <= {member.partition("#")[0] for member in view_of(group, "b")},
            PATIENCE_SECONDS,
            "a view without a or without c",
        )

    in_namespaces(traces, f"one-way-{policy}", befall, policy)


def view_of(group: LivingGroup, name: str) -> list[str]:
    """The members of the view that a member is in."""
    view = group.members[name].view
    return view.members if view else []


def test_spark_finds_every_promise_kept_in_all_of_these_runs(traces: Path) -> None:
    """The last one: it takes the traces that the others left, of every life of every member."""
    if not any(traces.iterdir()):
        pytest.skip("none of the others was run")
    found = verify_runs(traces, "local[2]")
    broken = [verdict for verdict in found.verdicts if verdict.promised and not verdict.holds]
    assert not broken, broken
    for run in found.runs:
        delivered = sum(counts.deliveries for counts in found.counts if counts.run == run.name)
        assert delivered > 1000, f"there was a load in {run.name}"

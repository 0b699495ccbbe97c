"""Real processes that are killed, stopped, restarted and cut off under load; Spark verifies the traces."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tools.load_group import LoadGroup
from tools.namespaces import Namespaces, namespaces, unavailable

from priocast.membership.options import MembershipOptions
from priocast.pipeline.study import verify_runs
from priocast.testing.addresses import free_addresses
from support.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.processes, pytest.mark.spark]

FAILURE_SECONDS = 1.0
NAMES = "abcd"


def options(founders: int, **changes: Any) -> MembershipOptions:
    """Failures are detected quickly, to keep the test short."""
    quick = {"heartbeat_ms": 60, "failure_ms": 1000 * FAILURE_SECONDS, "slow_ms": 10_000}
    return MembershipOptions(founders=founders, **{**quick, **changes})


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory for the traces of all runs, which are verified together at the end."""
    return tmp_path_factory.mktemp("traces")


def on_loopback(traces: Path, run: str, inject: Callable[[LoadGroup], None], **changes: Any) -> None:
    """Inject faults into a group of four under load."""
    addresses = dict(zip(NAMES, map(str, free_addresses(len(NAMES))), strict=True))
    with LoadGroup(
        addresses,
        run=run,
        membership=options(len(NAMES), **changes),
        trace=traces / run,
        state_directory=traces / run / "state",
    ) as group:
        group.start(*NAMES)
        group.wait_view(NAMES, PATIENCE_SECONDS)
        inject(group)
        group.finish(PATIENCE_SECONDS)


def incarnation(group: LoadGroup, name: str) -> str:
    """The incarnation of a member in the view of d."""
    view = group.view("d")
    assert view is not None
    (found,) = [member for member in view.members if member.startswith(f"{name}#")]
    return found


@pytest.mark.parametrize("delivery", ["agreed", "safe"])
def test_killed_members_and_coordinators_rejoin(traces: Path, delivery: str) -> None:
    def inject(group: LoadGroup) -> None:
        for victim in ("b", "a"):
            time.sleep(0.3)
            killed = incarnation(group, victim)
            group.members[victim].send_signal(signal.SIGKILL)
            group.wait_view(NAMES.replace(victim, ""), PATIENCE_SECONDS)
            group.start(victim)
            group.wait_view(NAMES, PATIENCE_SECONDS)
            assert incarnation(group, victim) != killed

    on_loopback(traces, f"killed-{delivery}", inject, delivery=delivery)


def test_a_restart_within_the_timeout_is_a_new_incarnation(traces: Path) -> None:
    def inject(group: LoadGroup) -> None:
        killed = incarnation(group, "c")
        group.members["c"].send_signal(signal.SIGKILL)
        group.start("c")
        group.wait_view(NAMES, PATIENCE_SECONDS)
        assert incarnation(group, "c") != killed

    on_loopback(traces, "restarted", inject)


def test_a_member_that_pauses_for_less_than_the_timeout_stays(traces: Path) -> None:
    def inject(group: LoadGroup) -> None:
        before = group.view("a")
        group.members["c"].send_signal(signal.SIGSTOP)
        time.sleep(FAILURE_SECONDS)
        reported = len(group.members["c"].reports)
        group.members["c"].send_signal(signal.SIGCONT)
        group.wait(
            lambda: len(group.members["c"].reports) > reported + 5, PATIENCE_SECONDS, "further reports of c"
        )
        assert group.view("a") == before, "no view changed"

    # Far more than a busy machine adds to the pause.
    on_loopback(traces, "paused", inject, failure_ms=20_000 * FAILURE_SECONDS, slow_ms=60_000)


def test_a_member_that_pauses_for_more_than_the_timeout_rejoins(traces: Path) -> None:
    def inject(group: LoadGroup) -> None:
        group.members["c"].send_signal(signal.SIGSTOP)
        group.wait_view("abd", PATIENCE_SECONDS)
        group.members["c"].send_signal(signal.SIGCONT)
        group.wait_view(NAMES, PATIENCE_SECONDS)
        assert "evicted" in [report.kind for report in group.members["c"].reports], (
            "its eviction was reported"
        )

    on_loopback(traces, "stopped", inject)


def in_namespaces(
    traces: Path, run: str, inject: Callable[[LoadGroup, Namespaces], None], policy: str
) -> None:
    """Inject faults into the network of five members under load."""
    reason = unavailable()
    if reason:
        pytest.skip(f"no network namespaces can be made here: {reason}")

    with (
        namespaces("abcde") as network,
        LoadGroup(
            network.addresses,
            run=run,
            membership=options(5, policy=policy),
            trace=traces / run,
            state_directory=traces / run / "state",
            within=network.within,
        ) as group,
    ):
        group.start(*"abcde")
        group.wait_view("abcde", PATIENCE_SECONDS)
        inject(group, network)
        network.heal()
        group.wait_view("abcde", PATIENCE_SECONDS)
        group.finish(PATIENCE_SECONDS, same_state=policy == "primary")


def test_the_majority_of_a_partitioned_primary_group_continues(traces: Path) -> None:
    def inject(group: LoadGroup, network: Namespaces) -> None:
        before = group.view("a")
        network.cut_apart("ab", "cde")
        group.wait_view("cde", PATIENCE_SECONDS)
        time.sleep(FAILURE_SECONDS)
        assert group.view("a") == before, "the minority installs no view"

    in_namespaces(traces, "cut-primary", inject, "primary")


def delivered(group: LoadGroup, name: str) -> int:
    """How many messages a member has delivered so far."""
    report = group.members[name].last_report
    return report.delivered if report else 0


def test_both_sides_of_a_partitionable_group_continue(traces: Path) -> None:
    def inject(group: LoadGroup, network: Namespaces) -> None:
        network.cut_apart("ab", "cde")
        group.wait_view("cde", PATIENCE_SECONDS)
        group.wait_view("ab", PATIENCE_SECONDS)
        before = {name: delivered(group, name) for name in "ac"}
        group.wait(
            lambda: all(delivered(group, name) >= count + 100 for name, count in before.items()),
            PATIENCE_SECONDS,
            "deliveries on both sides",
        )
        assert group.view_members("a") == ["a", "b"]
        assert group.view_members("c") == ["c", "d", "e"]

    in_namespaces(traces, "cut-partitionable", inject, "partitionable")


@pytest.mark.parametrize("policy", ["primary", "partitionable"])
def test_two_members_that_cannot_hear_each_other_are_never_in_one_view_for_long(
    traces: Path, policy: str
) -> None:
    def inject(group: LoadGroup, network: Namespaces) -> None:
        network.cut("a", "c")
        separated: list[list[str]] = []

        def are_separated() -> bool:
            separated.append(group.view_members("b"))
            return not {"a", "c"} <= {*separated[-1]}

        group.wait(are_separated, PATIENCE_SECONDS, "a view without a or without c")
        assert "b" in separated[-1] and len({"a", "c"} & {*separated[-1]}) < 2

    in_namespaces(traces, f"one-way-{policy}", inject, policy)


@pytest.mark.usefixtures("spark")
def test_spark_verifies_all_guarantees_in_these_runs(traces: Path) -> None:
    """This test runs last: it verifies the traces of all others, of every incarnation of every member."""
    if not any(traces.iterdir()):
        pytest.skip("none of the others was run")
    found = verify_runs(traces, "local[2]")
    broken = [verdict for verdict in found.verdicts if verdict.promised and not verdict.holds]
    assert not broken, broken
    for run in found.runs:
        delivered = sum(counts.deliveries for counts in found.counts if counts.run == run.name)
        assert delivered > 1000, f"there was a load in {run.name}"

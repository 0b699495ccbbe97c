"""The cases that are written down for lock-sets, in the cut form: the same steps, and the same outcome.

What members say to each other is the form's own. What an application may consume at each step of a script,
and how a view ends, is not. One script is left out, `no-lower-lock-blocks-high`: while a message is being
placed the forms hold up different ones, as `protocols/test_reorder_forms.py` tells.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from exploration.test_cut_mutants import (
    cut_by_the_least,
    decided_without_the_last_acknowledgment,
    lower_levels_are_not_waited_for,
)
from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, PacketId
from priocast.membership.epoch import Epoch
from priocast.membership.packets import FlushPlan
from priocast.protocols.reorder.acknowledgments import Acknowledgment
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.exchange import Complete, Exchange
from priocast.protocols.reorder.locks import ReorderLocks
from protocols import test_reorder_locks as of_the_locks
from protocols.harness import Group
from protocols.mutants import Patch, check_single_test_finds, recorded
from protocols.test_scripts import replay

SCRIPTS = (
    "wait-rule-3p-fifo-coordinator",
    "wait-rule-3p-fifo-distributed",
    "low-low-concurrent",
    "low-unreceived-but-in-history",
    "empty-queue-tail-lock",
    "lock-inheritance",
    "same-level-concurrent-insert",
    "snapshot-lock-atomic",
    "gc-late-ack",
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_of_the_lock_form_is_played_alike(script: str) -> None:
    text = recorded(script).replace(ReorderLocks.NAME, Reorder.NAME)
    assert _without_packets(replay(text)) == _without_packets(text)


def _without_packets(text: str) -> list[str]:
    return [line for line in text.splitlines() if not (" -> " in line or " <- " in line)]


class TestTheEndOfAView(of_the_locks.TestTheEndOfAView):
    """The lock form's own tests: `view-change-departed-ack-counted`, `view-change-missing-survivor-ack`."""

    @staticmethod
    def _group(sender: str, distributed: bool) -> Group:
        group = Group(["a", "b", "c"], Reorder.NAME, OrderingOptions(distributed=distributed))
        group.broadcast("a", 0, [b"l"])
        assert group.settle(rounds_max=20, consumers=["c"])
        group.broadcast(sender, 9, [b"h"])
        group.turn(sender)
        return group


def the_end_discards_what_departed_members_answered(patch: pytest.MonkeyPatch) -> None:
    """Only the answers of those who go on count, although one of them may have acted on the others."""

    def missing(self: Epoch, plan: FlushPlan) -> tuple[ProcessId, ProcessId, int, int] | None:
        departed = [rank for member, rank in self.ranks.items() if member not in plan.members]
        exchange: Any = vars(self.protocol)["_exchange"]
        exchange._departed = departed
        return original_missing(self, plan)

    def collect(
        self: Any, rank: int, acknowledgment: Acknowledgment, packet_id: PacketId
    ) -> Complete[Acknowledgment] | None:
        if rank in vars(self).get("_departed", ()):
            return None
        return original_collect(self, rank, acknowledgment, packet_id)

    original_missing, original_collect = Epoch.missing, Exchange.collect
    patch.setattr(Epoch, "missing", missing)
    patch.setattr(Exchange, "collect", collect)


LOCKS, CUTS = of_the_locks.TestTheEndOfAView(), TestTheEndOfAView()
COORDINATOR, DISTRIBUTED = (
    partial(test_a_script_of_the_lock_form_is_played_alike, each) for each in SCRIPTS[:2]
)


@pytest.mark.parametrize(
    ("mutant", "case"),
    [
        (lower_levels_are_not_waited_for, COORDINATOR),
        (lower_levels_are_not_waited_for, DISTRIBUTED),
        (decided_without_the_last_acknowledgment, COORDINATOR),
        (decided_without_the_last_acknowledgment, DISTRIBUTED),
        (decided_without_the_last_acknowledgment, partial(CUTS.test_view_change_missing_survivor_ack, False)),
        (decided_without_the_last_acknowledgment, partial(CUTS.test_view_change_missing_survivor_ack, True)),
        (cut_by_the_least, CUTS.test_view_change_departed_ack_counted),
        (cut_by_the_least, CUTS.test_view_change_departed_ack_counted_by_who_decided_on_it),
        (the_end_discards_what_departed_members_answered, CUTS.test_view_change_departed_ack_counted),
        (the_end_discards_what_departed_members_answered, LOCKS.test_view_change_departed_ack_counted),
    ],
)
def test_a_case_finds_the_mutant(
    mutant: Patch, case: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_single_test_finds(mutant, case, monkeypatch)

"""The adaptive order, exhaustively: every interleaving in which members change the distribution."""

import pytest

from exploration.scenarios import assert_found, assert_holds
from priocast.core.guarantees import AGREEMENT, TOTAL_ORDER
from protocols.test_adaptive_mutants import a_change_waits_for_nobody
from support.restless_policy import RestlessPolicy

ORDER = "adaptive"
RESTLESS = f"{RestlessPolicy.NAME}:1"


def test_the_book_keeper_changes_it_and_the_view_may_end() -> None:
    seen = assert_holds(ORDER, "a:low b:low a:low", adaptation="sliding-window:1", view_ends=True)
    assert seen.states > 1_000


def test_both_members_propose_all_the_time() -> None:
    assert assert_holds(ORDER, "a:low b:high", adaptation=RESTLESS).states > 300


def test_adaptive_change_waits_for_all_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_found(
        monkeypatch,
        a_change_waits_for_nobody,
        (TOTAL_ORDER, AGREEMENT),
        ORDER,
        "a:low a:high b:low",
        adaptation=RESTLESS,
    )

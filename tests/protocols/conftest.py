"""What tests of protocols may ask for."""

import pytest

from priocast.protocols import PROTOCOLS
from protocols.locks_in_turn import ReorderLocksInTurn


@pytest.fixture
def reorder_locks_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """One at a time is not among the orders that one can choose; here it is."""
    monkeypatch.setitem(PROTOCOLS, ReorderLocksInTurn.NAME, ReorderLocksInTurn)

"""Damage to a member's log directory: nothing is read as something that never was, and nothing is skipped."""

import pytest

from priocast.replication import state_log
from replication.damaged_directory import judge_all, written_directory
from support.waiting import run

STEP = 61
HOW = ("cut", "flipped")


def test_a_damaged_directory_is_trimmed_repaired_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample; `python -m replication.campaign` tries every byte and every bit."""
    monkeypatch.setattr(state_log.log, "disabled", True)

    async def test() -> None:
        directory = await written_directory()
        counts = judge_all(directory, STEP)
        found = set(counts)
        assert {"identity flipped: refused", "promise flipped: damaged", "snapshot flipped: damaged"} <= found
        assert {"identity removed: refused", "promise removed: damaged"} <= found
        assert {"segment cut: trimmed", "segment flipped: damaged"} <= found
        assert (
            not {f"{kind} {how}: unused" for kind in ("identity", "promise", "snapshot") for how in HOW}
            & found
        )

    run(test)

"""Who has received or delivered a message is kept in words of bits: a group may need several words."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline import model_runs
from pipeline.mutants import delivery_dropped
from pipeline.sample_runs import play
from pipeline.view_mutants import (
    safe_message_delivered_before_all_received_it,
    safe_message_not_received_at_the_end,
)
from priocast.pipeline import trace_tables
from priocast.pipeline.checks import agreement, uniformity
from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import load_trace

pytestmark = pytest.mark.spark


def test_many_members_take_several_words(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_tables, "_RANKS_PER_WORD", 2)
    model_runs.safe_and_divided().named("good").write_whole(tmp_path)
    mutants = [safe_message_delivered_before_all_received_it(), safe_message_not_received_at_the_end()]
    for index, mutant in enumerate(mutants):
        mutant.run.named(f"mutant-{index}").write_whole(tmp_path)
    dropped = delivery_dropped(play(batch_max=1))
    dropped.run.named("dropped").write_whole(tmp_path)
    with load_trace(open_runs(spark, tmp_path)) as trace:
        found = {row["run"]: row for row in uniformity.find(trace).where("run like 'mutant%'").collect()}
        lacking = {row["run"]: row for row in agreement.find(trace).collect()}
    assert tuple(lacking["dropped"]["members"]) == dropped.expected.members
    assert tuple(lacking["dropped"]["messages"]) == dropped.expected.messages
    assert found.keys() == {"mutant-0", "mutant-1"}
    for index, mutant in enumerate(mutants):
        row = found[f"mutant-{index}"]
        assert (row["position"], tuple(row["messages"]), tuple(row["members"])) == (
            mutant.expected.position,
            mutant.expected.messages,
            mutant.expected.members,
        )
        assert row["summary"].endswith(f"before it was received by {mutant.expected.members[0]}")

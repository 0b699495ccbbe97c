"""Who holds a message is kept in words of bits: a group that needs several is judged like any other."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline import living_runs
from pipeline.mutants_of_views import (
    safe_message_delivered_before_all_held_it,
    safe_message_not_held_at_the_end,
)
from priocast.pipeline.checks import uniformity
from priocast.pipeline.evidence import gather
from priocast.pipeline.sources import open_runs

pytestmark = pytest.mark.spark


def test_many_members_take_several_words(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uniformity, "_SEATS_PER_WORD", 2)
    living_runs.safe_and_divided().named("good").write_whole(tmp_path)
    mutants = [safe_message_delivered_before_all_held_it(), safe_message_not_held_at_the_end()]
    for place, mutant in enumerate(mutants):
        mutant.run.named(f"mutant-{place}").write_whole(tmp_path)
    with gather(spark, open_runs(tmp_path)) as evidence:
        found = {row["run"]: row for row in uniformity.find(evidence).collect()}
    assert found.keys() == {"mutant-0", "mutant-1"}
    for place, mutant in enumerate(mutants):
        row = found[f"mutant-{place}"]
        assert (row["position"], tuple(row["messages"]), tuple(row["members"])) == (
            mutant.named.position,
            mutant.named.messages,
            mutant.named.members,
        )
        assert row["detail"].endswith(f"not held by {mutant.named.members[0]}")

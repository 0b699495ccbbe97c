"""Campaigns give the verdicts of `priocast simulate`, on every master, and can be stopped and resumed."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from priocast.campaign.campaign import run_campaign
from priocast.campaign.plan import Matrix, Plan, PlannedSeed, cell_name, fingerprint, make_plan
from priocast.campaign.result_table import RESULTS
from priocast.campaign.seed_rows import RESULT_COLUMNS, SeedRunner
from priocast.core.errors import InvalidOption, PriocastError
from priocast.core.violation import Violation
from priocast.simulation.choice import ALL_GENERATED, Choice
from priocast.simulation.counters import Counters
from priocast.simulation.simulator import SimulatedRun
from priocast.simulation.swarm import SeedResult, run_seed
from support.network_storage import network_storage

pytestmark = pytest.mark.spark

TOKEN_RING = Choice("token-ring")


def test_every_combination_is_a_cell() -> None:
    plan = make_plan(
        range(3),
        Matrix(order=["token-ring", "sequencer-ub"], policy=["primary"], delivery=["agreed", "safe"]),
    )
    assert list(plan.cells) == [
        "--order token-ring --policy primary --delivery agreed",
        "--order token-ring --policy primary --delivery safe",
        "--order sequencer-ub --policy primary --delivery agreed",
        "--order sequencer-ub --policy primary --delivery safe",
    ]
    assert len(plan) == 12
    assert list(make_plan(range(3), Matrix()).cells) == ["any"]


def test_sizes_loads_and_faults_are_columns_of_the_results() -> None:
    plan = make_plan(range(2), Matrix(members=[2, 4], load=[50], fault=["none", "cut"]))
    assert "--members 4 --load 50 --fault cut" in plan.cells
    rows = [
        dict(zip(RESULT_COLUMNS.names, row, strict=True))
        for row in SeedRunner(plan.missing(set()), "code")(range(len(plan)))
    ]
    assert [(row["members"], row["load"], row["fault"]) for row in rows[:4]] == [
        (2, 50, "none"),
        (2, 50, "cut"),
        (4, 50, "none"),
        (4, 50, "cut"),
    ]
    assert not any(row["violations"] for row in rows)


def test_order_without_partitions_has_no_partitionable_cell() -> None:
    plan = make_plan(range(1), Matrix(order=["reorder", "token-ring"], policy=["partitionable"]))
    assert [choice.order for choice in plan.cells.values()] == ["token-ring"]
    with pytest.raises(InvalidOption, match="reorder does not support partitionable"):
        make_plan(range(1), Matrix(order=["reorder"], policy=["partitionable"]))


def test_what_is_stored_is_not_planned_again() -> None:
    plan = Plan(range(2), {"any": ALL_GENERATED, cell_name(TOKEN_RING): TOKEN_RING}, "code")
    missing = plan.missing({("any", 0), ("--order token-ring", 1)})
    assert missing == [
        PlannedSeed("--order token-ring", TOKEN_RING, 0),
        PlannedSeed("any", ALL_GENERATED, 1),
    ]


def test_row_has_all_columns() -> None:
    (row,) = SeedRunner([PlannedSeed("any", ALL_GENERATED, 3)], "code")([0])
    assert len(row) == len(RESULT_COLUMNS.names)
    named = dict(zip(RESULT_COLUMNS.names, row, strict=True))
    assert (named["seed"], named["code"], named["digest"]) == (3, "code", run_seed(3).digest)


@pytest.fixture(scope="module")
def stopped_campaign(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that was stopped when three of its six seeds were stored."""
    out = tmp_path_factory.mktemp("campaign")
    run_campaign(make_plan(range(3), Matrix()), str(out), "local[2]")
    return out


def test_resumed_campaign_has_the_verdicts_of_simulate(spark: SparkSession, stopped_campaign: Path) -> None:
    done: list[int] = []
    plan = make_plan(range(6), Matrix())
    by = ("order", "members", "fault")
    result = run_campaign(plan, str(stopped_campaign), "local[2]", by, done.append)
    assert (result.seeds, result.seeds_run, result.failed) == (6, 3, 0)
    assert done[0] == 3 and done[-1] == 6
    assert result.start_seconds > 0 and result.run_seconds > 0
    assert sum(row.seeds for row in result.rows) == 6
    assert all(set(row.values) == set(by) and row.values["fault"] == "any" for row in result.rows)
    stored = spark.read.parquet(str(stopped_campaign / RESULTS)).select("seed", "digest").collect()
    assert sorted((row["seed"], row["digest"]) for row in stored) == [
        (seed, run_seed(seed).digest) for seed in range(6)
    ]


def test_results_of_other_code_are_not_mixed(spark: SparkSession, stopped_campaign: Path) -> None:
    other = Plan(range(3), {"any": ALL_GENERATED}, "other code")
    with pytest.raises(InvalidOption, match=rf"other code \({fingerprint()}; this is other code\)"):
        run_campaign(other, str(stopped_campaign), "local[2]")


@pytest.mark.parametrize(
    ("out", "problem"),
    [
        ("webhdfs://127.0.0.1:1/c", "the storage cannot be reached: .*Connection refused"),
        ("s3a://user:secret@b/c", "no file system for .*S3AFileSystem"),
        ("nowhere://h/c", "no file system for the scheme 'nowhere'"),
        ("notes", r"results/notes\.txt was not written by a campaign: it is left alone"),
        ("file", "results was not written by a campaign: it is left alone"),
        ("theirs", "results was not written by a campaign: it is left alone"),
        ("damaged", "contains a damaged file: Spark cannot read .*part-0"),
        ("/proc/x", "a directory cannot be created: file:/proc/x/results"),
    ],
)
def test_out_that_cannot_be_used_is_rejected_before_any_seed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("notes/results/notes.txt", "file/results", "damaged/results/part-0.parquet"):
        Path(place).parent.mkdir(parents=True)
        Path(place).write_text("somebody's")
    spark.range(3).write.parquet(str(tmp_path / "theirs" / RESULTS))
    before = _contents(tmp_path)
    done: list[int] = []
    with pytest.raises(PriocastError, match=problem) as raised:
        run_campaign(make_plan(range(2), Matrix()), out, "local[2]", on_seeds_done=done.append)
    assert "\n" not in str(raised.value) and "secret" not in str(raised.value)
    assert not any(done) and _contents(tmp_path) == before


def test_storage_that_refuses_the_results_is_named_before_any_seed(spark: SparkSession) -> None:
    done: list[int] = []
    with network_storage() as storage:
        storage.refuses_writes = True
        with pytest.raises(PriocastError, match=r"webhdfs://\S+/c: the storage denies access"):
            run_campaign(
                make_plan(range(2), Matrix()), storage.url_to_read("c"), "local[2]", on_seeds_done=done.append
            )
    assert not any(done)


def test_out_is_a_path_and_not_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    plan = make_plan(range(2), Matrix(load=[10]))
    for already_run in (0, 2):
        result = run_campaign(plan, str(tmp_path / "c[1]"), "local[2]")
        assert (result.seeds, result.seeds_run) == (2, 2 - already_run)
    assert [path.name for path in tmp_path.iterdir()] == ["c[1]"]


def _contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_failed_seeds_are_shown_with_the_command_that_replays_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table with a failed seed, stored twice, as a driver that was killed while it stored may leave it."""

    def failed_result(run: SimulatedRun, _started: float) -> SeedResult:
        seed = run.scenario.seed
        return SeedResult(
            seed=seed,
            digest="",
            violations=(Violation(guarantee="Total order", summary="made up", run=f"seed {seed}"),),
            counters=Counters(),
            virtual_ns=0,
            seconds=0.0,
        )

    monkeypatch.setattr("priocast.campaign.seed_rows.result_of", failed_result)
    plan = Plan(range(7, 8), {cell_name(TOKEN_RING): TOKEN_RING}, "code")
    rows = list(SeedRunner(plan.missing(set()), "code")([0, 0]))
    spark.createDataFrame(rows, RESULT_COLUMNS).write.parquet(str(tmp_path / RESULTS))
    result = run_campaign(plan, str(tmp_path), "local[2]")
    assert (result.seeds, result.seeds_run, result.failed) == (1, 0, 1)
    (failed,) = result.failed_seeds
    assert failed.violations == ("seed 7: Total order violated: made up",)
    assert failed.replay == "priocast simulate --seeds 7 --order token-ring --show"

"""`priocast watch` follows a run that is being written, and judges it as it grows."""

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
import typer
from benchmarks.watch_delay import measure
from pyarrow import parquet
from typer.testing import CliRunner, Result

from pipeline import mutants
from pipeline.live_slices import reordering
from pipeline.sample_runs import SampleRun, play
from priocast.cli import watch
from priocast.cli.exit_codes import EXIT_INVALID
from priocast.core.errors import InvalidInput, PriocastError, TraceFault, UnreadableTrace
from priocast.pipeline.live import watching
from priocast.pipeline.live.watching import LiveUpdate, watch_runs
from priocast.trace.run_directory import write_manifest, write_segment
from priocast.trace.schema import SCHEMA_VERSION, STOPPED, VIEW
from support.network_storage import network_storage

app = typer.Typer(rich_markup_mode="rich")
app.command(epilog=watch.EXAMPLES)(watch.watch)

PATIENCE_SECONDS = 300.0
DELAY_MAX_SECONDS = 30.0


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "150", "NO_COLOR": "1"})


def ended(run: SampleRun) -> SampleRun:
    """The run, with every member stopping at its end."""
    views = [row for row in run.group_events if row.event == VIEW]
    ends = [row._replace(event=STOPPED, members=(), voluntary=True) for row in views]
    return run.changed(lambda rows: [*rows, *ends])


def write_half(run: SampleRun, directory: Path, half: int) -> None:
    """Write the first or the second half of what each member recorded."""
    write_manifest(directory, run.manifest)
    for member in sorted({row.member for row in run.rows}):
        rows = [row for row in run.rows if row.member == member]
        middle = len(rows) // 2
        part = rows[middle:] if half else rows[:middle]
        write_segment(directory, run.manifest.run, f"{member}-1-{half:06}", part)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_what_members_write_is_seen_as_it_comes_until_all_have_stopped(tmp_path: Path) -> None:
    run = ended(play())
    updates: list[LiveUpdate] = []

    def on_update(update: LiveUpdate) -> bool:
        updates.append(update)
        if sum(len(each.figures) for each in updates) == 1:
            write_half(run, tmp_path / "sample", 1)
        return True

    threading.Timer(0.5, write_half, [run, tmp_path / "sample", 0]).start()
    watch_runs(tmp_path, on_update, seconds=PATIENCE_SECONDS)
    assert updates[-1].has_ended
    figures = [each for update in updates for each in update.figures]
    assert len(figures) > 1
    assert figures[-1].delivered == sum(row.count for row in run.messages if row.event == "delivered")
    assert sum(each.count for slice_ in figures for each in slice_.priorities) == sum(
        row.count for row in run.messages if row.event == "broadcast"
    )
    assert figures[-1].stopped == figures[-1].members == ("a#1", "b#1", "c#1", "d#1")
    assert not any(update.violations for update in updates)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_violation_ends_the_command_with_exit_code_1(tmp_path: Path) -> None:
    mutants.delivery_swapped_in_content(play(batch_max=1)).run.write(tmp_path)
    seconds = str(PATIENCE_SECONDS)
    result = invoke(str(tmp_path), "--stop-at-violation", "--seconds", seconds, "--json")
    assert result.exit_code == 1
    violations = [each for line in result.stdout.splitlines() for each in json.loads(line)["violations"]]
    assert (violations[0]["guarantee"], violations[0]["position"]) == ("Total order", mutants.POSITION)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_lines_have_rates_and_times(tmp_path: Path) -> None:
    ended(play(ticks=5)).write(tmp_path)
    result = invoke(str(tmp_path), "--seconds", str(PATIENCE_SECONDS))
    assert result.exit_code == 0
    assert "sample: view 1@a#1" in result.stdout
    assert "p99" in result.stdout
    assert "nothing is wrong so far" in result.stdout


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_an_undecided_conflict_is_reported_at_the_end(tmp_path: Path) -> None:
    """Where queues are re-ordered, a conflict counts once no process can drop out of the view."""
    planted = mutants.delivery_swapped_in_content(play(batch_max=1)).run
    going_on = planted.changed(lambda rows: [row for row in reordering(rows) if row.event != STOPPED])
    going_on.write(tmp_path)
    result = invoke(str(tmp_path), "--seconds", "0.1")
    assert result.exit_code == EXIT_INVALID
    assert "conflicts are undecided, because their views still stand" in result.stdout
    assert "nothing is wrong" not in result.stdout


def rewrite(segment: Path, change: Callable[[pyarrow.Table], pyarrow.Table]) -> None:
    parquet.write_table(change(parquet.read_table(segment)), segment)


def of_version_5(segment: Path) -> None:
    older = pyarrow.scalar(SCHEMA_VERSION - 1, pyarrow.int32())

    def change(table: pyarrow.Table) -> pyarrow.Table:
        at = table.schema.get_field_index("schema_version")
        return table.set_column(at, "schema_version", pyarrow.repeat(older, table.num_rows))

    rewrite(segment, change)


def truncated(segment: Path) -> None:
    content = segment.read_bytes()
    segment.write_bytes(content[: len(content) // 2])


def emptied(segment: Path) -> None:
    segment.write_bytes(b"")


def without_a_manifest(segment: Path) -> None:
    (segment.parent.parent / "manifest.json").unlink()


def manifest_of_version_5(segment: Path) -> None:
    path = segment.parent.parent / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": SCHEMA_VERSION - 1}))


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (of_version_5, r"b-1-000000\.parquet has trace schema version 5, and this release reads version 6"),
        (manifest_of_version_5, r"manifest\.json has trace schema version 5"),
        (truncated, r"contains a damaged file: Spark cannot read \S+b-1-000000\.parquet"),
        (emptied, r"b-1-000000\.parquet is damaged: it has no rows"),
        (without_a_manifest, "belongs to no run"),
    ],
)
def test_a_trace_that_cannot_be_read_is_one_line_that_names_the_file(
    damage: Callable[[Path], None], problem: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage(ended(play(ticks=3)).write(tmp_path) / "messages" / "b-1-000000.parquet")
    result = invoke(str(tmp_path), "--seconds", str(PATIENCE_SECONDS))
    assert isinstance(result.exception, TraceFault)
    assert re.search(problem, str(result.exception)) and "\n" not in str(result.exception)
    assert "nothing is wrong" not in result.stdout
    assert not caplog.records and not result.stderr, "a stack trace"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_step_that_is_being_read_when_time_is_up_is_finished(tmp_path: Path) -> None:
    play(ticks=3).write(tmp_path)
    result = invoke(str(tmp_path), "--seconds", "0.01")
    assert (result.exit_code, result.exception) == (0, None)
    assert "sample: view 1@a#1" in result.stdout


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("is_empty", [True, False])
def test_a_trace_of_which_nothing_was_read_is_not_called_good(
    is_empty: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No member has written anything yet, or the first step takes longer than the bound for the last one."""
    if not is_empty:
        play(ticks=3).write(tmp_path)
        monkeypatch.setattr(watching, "_LAST_STEP_SECONDS", 0.0)
    result = invoke(str(tmp_path), "--seconds", "0.01")
    assert isinstance(result.exception, UnreadableTrace)
    assert str(result.exception).startswith(f"nothing was read from {tmp_path}")
    assert "nothing is wrong" not in result.stdout
    assert not caplog.records and not result.stderr, "a stack trace"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_runs_are_watched_at_urls(tmp_path: Path) -> None:
    directory = tmp_path / "of [one] group"
    ended(play(ticks=3)).write(directory)
    result = invoke(directory.as_uri(), "--seconds", str(PATIENCE_SECONDS))
    assert (result.exit_code, result.exception) == (0, None)
    with network_storage() as storage:
        for path in directory.rglob("*.*"):
            storage.files[f"runs/{path.relative_to(directory)}"] = path.read_bytes()
        result = invoke(storage.url_to_read("runs"), "--seconds", str(PATIENCE_SECONDS))
        assert (result.exit_code, result.exception) == (0, None)
        assert "sample: view 1@a#1" in result.stdout
        absent = invoke(storage.url_to_read("nowhere"))
        assert isinstance(absent.exception, InvalidInput)
        assert "nowhere is not a directory" in str(absent.exception)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("webhdfs://127.0.0.1:1/runs", "cannot be reached: .*Connection refused"),
        ("nowhere://host/runs", "no file system for the scheme 'nowhere'"),
    ],
)
def test_a_storage_that_cannot_be_read_is_named(url: str, problem: str) -> None:
    result = invoke(url)
    assert isinstance(result.exception, PriocastError)
    assert re.search(problem, str(result.exception)) and "\n" not in str(result.exception)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_what_is_not_a_directory_is_rejected(scheme: str, tmp_path: Path) -> None:
    result = invoke(f"{scheme}{tmp_path}/nowhere")
    assert isinstance(result.exception, InvalidInput)
    assert "nowhere is not a directory" in str(result.exception)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_violation_is_reported_soon_after_its_record(tmp_path: Path) -> None:
    """On the clock of the records. The figure is in docs/operations.md; other tests may run at once here."""
    delays = measure(tmp_path / "delay", violations=1)
    assert 0 < delays[0] < DELAY_MAX_SECONDS

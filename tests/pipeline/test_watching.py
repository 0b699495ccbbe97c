"""`priocast watch` follows a run that is being written, and judges it as it grows."""

import json
import threading
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pipeline import mutants
from pipeline.sample_runs import SampleRun, play
from priocast.cli import watch
from priocast.core.errors import InvalidInput
from priocast.pipeline.live.watching import LiveUpdate, watch_runs
from priocast.trace.run_directory import write_manifest, write_segment
from priocast.trace.schema import STOPPED, VIEW

app = typer.Typer(rich_markup_mode="rich")
app.command(epilog=watch.EXAMPLES)(watch.watch)

PATIENCE_SECONDS = 300.0


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


def test_what_is_not_a_directory_is_rejected(tmp_path: Path) -> None:
    result = invoke(str(tmp_path / "nowhere"))
    assert isinstance(result.exception, InvalidInput)
    assert "nowhere is not a directory" in str(result.exception)

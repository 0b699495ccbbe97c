"""`priocast demo`, from real processes to the report, with a small workload."""

import json
import re
import sys
from pathlib import Path

import pytest

from priocast.cli.main import app
from priocast.core.errors import InvalidOption
from support.command import command_error, priocast

pytestmark = [pytest.mark.processes, pytest.mark.spark]


#: Stands for a browser: keeps what the live page is sent.
WATCHER = """
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1] + "events") as events, open(sys.argv[2], "wb") as file:
    for line in events:
        file.write(line)
        file.flush()
"""


def test_demo_prints_verdicts_and_a_comparison_and_writes_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, seen = tmp_path / "out", tmp_path / "seen"
    (tmp_path / "watcher.py").write_text(WATCHER)
    monkeypatch.setenv("BROWSER", f"{sys.executable} {tmp_path / 'watcher.py'} %s {seen} &")
    small = ("--members", "3", "--seconds", "0.5", "--out", str(out), "--master", "local[1]")
    result = priocast("demo", *small, "--live", "--json")
    assert result.returncode == 0, result.stderr
    assert '"group":"demo"' in seen.read_text()
    document = json.loads(result.stdout)
    assert [run["name"] for run in document["runs"]] == ["prioritised-half-load", "plain", "prioritised"]
    assert all(run["same_digest"] for run in document["runs"])
    assert all(verdict["violations"] == 0 for verdict in document["verdicts"] if verdict["promised"])
    assert {(time["run"], time["priority"]) for time in document["delivery_times"]} >= {
        ("plain", 224),
        ("prioritised", 224),
    }
    page = (out / "report.html").read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//|url\(["']?http|@import""", page), (
        "the report must not load anything from the network"
    )


def test_invalid_options_are_rejected_before_anything_is_started(tmp_path: Path) -> None:
    assert "'x'" in command_error("demo", "--order", "x", "--out", str(tmp_path / "out"))
    assert "members is 0" in command_error("demo", "--members", "0", "--out", str(tmp_path / "out"))
    order = ("--order", "time-parts/sequencer-ub")
    for option, value in (("--load", "nan"), ("--seconds", "inf"), ("--part-ms", "nan")):
        message = command_error("demo", *order, option, value, "--out", str(tmp_path / "out"))
        assert f"is {value}: " in message
        assert "must be above 0" in message
    assert not (tmp_path / "out").exists()


def test_only_a_fixed_order_is_offered_and_accepted(tmp_path: Path) -> None:
    assert "auto" not in priocast("demo", "--help").stdout
    assert "'auto'" in command_error("demo", "--order", "auto", "--out", str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("option", "protocol"),
    [
        ("--burst", "token-ring"),
        ("--bucket", "causal-history and all-ack"),
        ("--acknowledge-ms", "all-ack"),
        ("--part-ms", "time-parts"),
        ("--part-count", "count-parts"),
        ("--adaptation", "adaptive"),
    ],
)
def test_an_option_that_the_order_would_ignore_is_rejected(
    option: str, protocol: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidOption, match=f"{option} applies to {protocol} only, but --order is"):
        app(["demo", option, "7", "--out", str(tmp_path / "out")], standalone_mode=False)


def test_unwritable_output_is_rejected_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"because {tmp_path / 'file'} is a file" in command_error("demo", "--out", str(tmp_path / "file"))
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    message = command_error("demo", "--out", str(tmp_path / "out"))
    assert message.endswith("report.html is a directory: choose a file")
    assert not (tmp_path / "out" / "traces").exists()


def test_directory_that_is_not_a_run_is_not_removed(tmp_path: Path) -> None:
    manifest = tmp_path / "traces" / "website" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"name": "a website"}')
    assert f"{manifest} is not of a run" in command_error("demo", "--out", str(tmp_path))
    assert manifest.read_text() == '{"name": "a website"}'

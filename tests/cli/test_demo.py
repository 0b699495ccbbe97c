"""`priocast demo`, from real processes to the report; small, and with everything real."""

import json
import re
from pathlib import Path

import pytest

from support.command import priocast, refusal

pytestmark = [pytest.mark.processes, pytest.mark.spark]


def test_the_demo_ends_in_verdicts_a_comparison_and_a_report(tmp_path: Path) -> None:
    out = tmp_path / "out"
    small = ("--members", "3", "--seconds", "0.5", "--out", str(out), "--master", "local[1]")
    result = priocast("demo", *small, "--json")
    assert result.returncode == 0, result.stderr
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
        "no network is needed"
    )


def test_bad_input_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    assert "there is no protocol 'x'" in refusal("demo", "--order", "x", "--out", str(tmp_path / "out"))
    assert "1 to 64" in refusal("demo", "--members", "0", "--out", str(tmp_path / "out"))
    for option, value in (("--load", "nan"), ("--seconds", "inf"), ("--part-ms", "nan")):
        said = refusal("demo", option, value, "--out", str(tmp_path / "out"))
        assert f"is {value}: it must be above 0" in said
    assert not (tmp_path / "out").exists()


def test_output_that_cannot_be_written_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"because {tmp_path / 'file'} is a file" in refusal("demo", "--out", str(tmp_path / "file"))
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    said = refusal("demo", "--out", str(tmp_path / "out"))
    assert said.endswith("report.html is a directory: name a file")
    assert not (tmp_path / "out" / "traces").exists()


def test_what_is_no_run_is_not_removed(tmp_path: Path) -> None:
    manifest = tmp_path / "traces" / "website" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"name": "a website"}')
    assert f"{manifest} is not of a run" in refusal("demo", "--out", str(tmp_path))
    assert manifest.read_text() == '{"name": "a website"}'

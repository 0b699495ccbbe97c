"""The report is one self-contained file, and no text in it is taken for markup."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from pipeline.sample_results import MARKUP, delivery_time, result
from priocast.pipeline.report import render_page, write_report
from priocast.pipeline.report_finding import finding_of
from priocast.pipeline.results import StudyResult

VOID = {"meta", "br"}


class Nesting(HTMLParser):
    """Checks that every element that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_well_formed_and_loads_nothing() -> None:
    page = render_page(result("plain", "prioritised"), Path("runs"))
    nesting = Nesting()
    nesting.feed(page)
    assert nesting.open == []
    assert not re.search(r"<(script|link|iframe|img)\b|@import|\bsrc=|url\((?!#)", page)
    outside = {
        link for link in re.findall(r'(?:href|xlink:href)="([^"]*)"', page) if not link.startswith("#")
    }
    assert outside == set()
    assert "prefers-color-scheme: dark" in page


def test_a_report_of_correct_runs_says_so() -> None:
    page = render_page(result("plain", "prioritised"), Path("my runs"))
    assert "All 2 promises were kept." in page
    assert "10,000 recorded events of 2 runs" in page
    assert "priocast verify &#x27;my runs&#x27;" in page


def test_a_report_opens_with_its_finding_then_verdicts_then_tables() -> None:
    page = render_page(compared(plain_ms=7600, prioritised_ms=7.4), Path("runs"))
    finding = "99 of 100 urgent messages were delivered within 7.4 ms instead of 7.6 s: 1,027 times faster."
    headings = [finding, "promises were kept", ">Guarantees<", ">Runs<", ">Delivery time<", ">Views<"]
    places = [page.index(text) for text in headings]
    assert places == sorted(places)


def test_options_are_folded_and_only_differences_are_shown() -> None:
    page = render_page(compared(plain_ms=7600, prioritised_ms=7.4), Path("runs"))
    shown, _, after = page[page.index(">Runs<") :].partition("<details>")
    everything, _, _ = after.partition("</details>")
    assert "no (plain)" in shown
    assert "partition policy" not in shown
    assert "partition policy" in everything


def test_runs_that_cannot_be_compared_have_no_ratio() -> None:
    page = render_page(result("one"), Path("runs"))
    assert "99 of 100" in page
    assert "times faster" not in page
    assert finding_of(result("one")) is None
    assert "99 of 100" not in render_page(replace(result("one"), delivery_times=()), Path("runs"))


def test_priorities_that_cost_time_are_said_to() -> None:
    finding = finding_of(compared(plain_ms=10, prioritised_ms=30))
    assert str(finding).endswith("within 30 ms instead of 10 ms: 3.0 times slower.")


def compared(plain_ms: float, prioritised_ms: float) -> StudyResult:
    """A plain and a prioritised run, with these delivery times of urgent messages."""
    made = result("plain", "prioritised")
    runs = tuple(
        replace(run, manifest=msgspec.structs.replace(run.manifest, prioritised=run.name == "prioritised"))
        for run in made.runs
    )
    times = (delivery_time("plain", 224, plain_ms), delivery_time("prioritised", 224, prioritised_ms))
    return replace(made, runs=runs, delivery_times=times, inversions=())


def test_violations_are_listed_and_escaped() -> None:
    page = render_page(result("one", violations=5), Path("runs"))
    assert "1 of 1 promises were broken" in page
    assert "broken 5 times" in page
    assert "a#1/0/3" in page
    assert MARKUP not in page
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in page


def test_views_are_listed_with_the_origins_of_their_members() -> None:
    page = render_page(result("one"), Path("runs"))
    assert "2@a#1" in page
    assert "<div>joined: d#1</div><div>1@a#1: a#1, b#1</div>" in page
    assert "1.200 - 1.250" in page
    assert "<td>sequencer-ub, none</td>" in page
    assert "41.5" in page
    assert "Membership over time" in page


def test_inversions_are_listed_where_they_can_be_measured() -> None:
    page = render_page(result("one"), Path("runs"))
    assert "40.0%" in page
    assert page.count(">inversions</th>") == 1
    without = replace(result("one"), inversions=())
    assert "40.0%" not in render_page(without, Path("runs"))


def test_report_is_written_completely_and_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.html"
    assert write_report(result("one"), Path("runs"), path) == path
    first = path.read_text()
    write_report(result("one", violations=1), Path("runs"), path)
    assert path.read_text() != first
    assert [child.name for child in path.parent.iterdir()] == ["report.html"]


def test_a_report_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        write_report(result("one"), Path("runs"), path)
    assert list(tmp_path.iterdir()) == [path]

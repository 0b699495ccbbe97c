"""The report is one self-contained file, and no text in it is taken for markup."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pipeline.sample_results import MARKUP, result
from priocast.pipeline.report import render_page, write_report

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

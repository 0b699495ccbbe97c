"""`priocast explain`, as a user runs it."""

from pathlib import Path

import pytest
from tools.reorder_page import figure_2

from support.command import priocast, refusal


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("explained") / "figure-2"
    figure_2("reorder").write(directory, "figure-2")
    return str(directory)


def test_says_what_the_message_overtook_and_why(trace: str) -> None:
    result = priocast("explain", trace, "--message", "p3#1/224/0")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert (
        lines[0] == "p3#1/224/0 (priority urgent, 224) is at position 1 of view 1@p1#1, ordered by reorder."
    )
    assert "  queue with it:      p2#1/32/0 [p3#1/224/0] p2#1/32/1" in lines
    assert "  not p2#1/32/0, which p1#1 had consumed when it came there" in lines
    assert lines[-1] == "It overtook 1 message at p1#1, p2#1 and p3#1: p2#1/32/1."


def test_the_worst_message_need_not_be_named(trace: str) -> None:
    assert priocast("explain", trace, "--worst").stdout.startswith("p3#1/224/0 ")


@pytest.mark.parametrize(("suffix", "magic"), [(".svg", b"<svg "), (".png", b"\x89PNG")])
def test_draws_the_queues(trace: str, suffix: str, magic: bytes, tmp_path: Path) -> None:
    figure = tmp_path / "new" / f"why{suffix}"
    result = priocast("explain", trace, "--worst", "--figure", str(figure))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"The figure is in {figure}"
    assert figure.read_bytes().startswith(magic)


def test_a_wrong_name_lists_some_that_there_are(trace: str) -> None:
    said = refusal("explain", trace, "--message", "p9#1/0/0")
    assert "there is no message 'p9#1/0/0' in the trace" in said
    assert said.endswith("some that there are: p2#1/32/0, p2#1/32/1, p3#1/224/0")


def test_one_message_has_to_be_chosen(trace: str) -> None:
    assert "name a message with --message, or ask for the --worst one" in refusal("explain", trace)
    both = refusal("explain", trace, "--worst", "--message", "p3#1/224/0")
    assert both == "error: --message and --worst each choose a message: give one of them only"


def test_other_kinds_of_figures_are_refused(trace: str) -> None:
    said = refusal("explain", trace, "--worst", "--figure", "why.pdf")
    assert "--figure is 'why.pdf': its name must end in .svg or .png" in said


def test_a_figure_that_cannot_be_written_is_refused_before_anything_is_said(
    trace: str, tmp_path: Path
) -> None:
    (tmp_path / "why.svg").mkdir()
    said = refusal("explain", trace, "--worst", "--figure", str(tmp_path / "why.svg"))
    assert said.endswith("why.svg is a directory: name a file")


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    assert "is not a run directory" in refusal("explain", str(tmp_path), "--worst")


def test_help_has_examples() -> None:
    said = priocast("explain", "--help").stdout
    assert "Examples" in said
    assert "priocast explain runs/demo/prioritised --worst" in said

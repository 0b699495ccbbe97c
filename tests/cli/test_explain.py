"""`priocast explain`, as a user runs it."""

from pathlib import Path

import pytest
from tools.reorder_page import figure_2

from support.command import command_error, priocast


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("explained") / "figure-2"
    figure_2("reorder").write(directory, "figure-2")
    return str(directory)


def test_prints_what_the_message_overtook_and_why(trace: str) -> None:
    result = priocast("explain", trace, "--message", "p3#1/224/0")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert (
        lines[0] == "p3#1/224/0 (priority urgent, 224) is at position 1 of view 1@p1#1, ordered by reorder."
    )
    assert "  queue with it:      p2#1/32/0 [p3#1/224/0] p2#1/32/1" in lines
    assert "  not p2#1/32/0, which p1#1 had consumed when it arrived there" in lines
    assert lines[-1] == "It overtook 1 message at p1#1, p2#1 and p3#1: p2#1/32/1."


def test_worst_message_is_found(trace: str) -> None:
    assert priocast("explain", trace, "--worst").stdout.startswith("p3#1/224/0 ")


@pytest.mark.parametrize(("suffix", "magic"), [(".svg", b"<svg "), (".png", b"\x89PNG")])
def test_figure_of_the_queues_is_written(trace: str, suffix: str, magic: bytes, tmp_path: Path) -> None:
    figure = tmp_path / "new" / f"why{suffix}"
    result = priocast("explain", trace, "--worst", "--figure", str(figure))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"Figure: {figure}"
    assert figure.read_bytes().startswith(magic)


def test_unknown_message_is_rejected_with_examples_of_existing_ones(trace: str) -> None:
    message = command_error("explain", trace, "--message", "p9#1/0/0")
    assert "the trace has no message 'p9#1/0/0'" in message
    assert message.endswith("some messages of this trace: p2#1/32/0, p2#1/32/1, p3#1/224/0")


def test_exactly_one_message_must_be_chosen(trace: str) -> None:
    assert "no message chosen: give --message NAME or --worst" in command_error("explain", trace)
    both = command_error("explain", trace, "--worst", "--message", "p3#1/224/0")
    assert both == "error: --message and --worst exclude each other: give one of them"


def test_other_figure_formats_are_rejected(trace: str) -> None:
    message = command_error("explain", trace, "--worst", "--figure", "why.pdf")
    assert "--figure is 'why.pdf': its name must end in .svg or .png" in message


def test_unwritable_figure_is_rejected_before_anything_is_printed(trace: str, tmp_path: Path) -> None:
    (tmp_path / "why.svg").mkdir()
    message = command_error("explain", trace, "--worst", "--figure", str(tmp_path / "why.svg"))
    assert message.endswith("why.svg is a directory: choose a file")


def test_directory_without_a_trace_is_rejected(tmp_path: Path) -> None:
    assert "is not a run directory" in command_error("explain", str(tmp_path), "--worst")


def test_help_has_examples() -> None:
    output = priocast("explain", "--help").stdout
    assert "Examples" in output
    assert "priocast explain runs/demo/prioritised --worst" in output

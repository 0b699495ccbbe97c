"""The bar of stages that commands show while Spark works."""

import io

from rich.console import Console

from priocast.cli.verdict_output import show_progress


def shown(force_terminal: bool, quiet: bool = False) -> str:
    console = Console(file=io.StringIO(), force_terminal=force_terminal, width=120, color_system=None)
    with show_progress(quiet, console) as progress:
        progress("starting Spark", 2)
        progress("reading [traces]")
        progress("checking", 5)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_terminal_shows_the_stage_and_how_many_there_are() -> None:
    text = shown(force_terminal=True)
    assert "2/8" in text and "checking …" in text, "two are done, this one and five more are known"


def test_nothing_is_shown_elsewhere() -> None:
    assert shown(force_terminal=False) == ""
    assert shown(force_terminal=True, quiet=True) == ""

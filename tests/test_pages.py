"""README, tutorial and how-to pages: every block of Python runs, and every command would be understood."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from priocast.testing.addresses import free_addresses
from support.command import priocast_here
from support.command_check import UsageError, check_command
from support.page import ROOT, check_block, commands_of, fenced_blocks, python_blocks

TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = [
    ROOT / "README.md",
    TUTORIAL,
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs/how-to").glob("*.md")),
]
LANGUAGES = {"python", "console", "text", "toml", "yaml", "dockerfile", "ini"}
"""What a block may be: run, checked, output, or a file that another test checks."""

PROGRAM = "asyncio.run(main())"
"""A whole program; the README shows examples, which tests/test_examples.py runs and compares with it."""

BLOCKS = [
    pytest.param(path, block, id=f"{path.relative_to(ROOT)}-{number}")
    for path in PAGES
    for number, block in enumerate(python_blocks(path))
    if PROGRAM not in block
]
COMMANDS = [
    pytest.param(path, command, id=f"{path.stem}: {command}")
    for path in PAGES
    for command in commands_of(path)
]


@pytest.mark.parametrize(("path", "block"), BLOCKS)
def test_a_block_runs(path: Path, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "TlsSecurity(" in block:
        for command in commands_of(path):
            if command.startswith("priocast keys"):
                assert priocast_here(*shlex.split(command)[1:]).returncode == 0
    before = set(tmp_path.rglob("*"))
    check_block(block, str(path))
    assert set(tmp_path.rglob("*")) == before, "it leaves nothing behind"


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_a_command_is_understood(path: Path, command: str) -> None:
    check_command(command, {block.title for block in fenced_blocks(path)})


def test_every_block_has_a_kind() -> None:
    assert len(BLOCKS) > 15
    assert len(COMMANDS) > 15
    for path in PAGES:
        assert {block.language for block in fenced_blocks(path)} <= LANGUAGES, path
        assert path.read_text().count("\n```") == 2 * len(fenced_blocks(path)), path


def test_programs_are_shown_by_the_readme_only() -> None:
    shown = [path for path in PAGES for block in python_blocks(path) if PROGRAM in block]
    assert set(shown) == {ROOT / "README.md"}


@pytest.mark.parametrize(
    "command",
    [
        "priocast nodes",
        "make nothing",
        "pip install '.[nothing]'",
        "python nothing.py",
        "docker -f nothing",
        "ls",
    ],
)
def test_a_wrong_command_is_found(command: str) -> None:
    with pytest.raises((AssertionError, UsageError)):
        check_command(command)


@pytest.mark.processes
def test_the_service_of_the_tutorial_runs_in_three_processes(tmp_path: Path) -> None:
    [program] = [block for block in fenced_blocks(TUTORIAL) if block.title == "seats.py"]
    (tmp_path / program.title).write_text(program.text)
    shown = ["127.0.0.1:7401", "127.0.0.1:7402", "127.0.0.1:7403"]
    free = dict(zip(shown, map(str, free_addresses(3)), strict=True))
    commands = [shlex.split(each) for each in commands_of(TUTORIAL) if each.startswith("python seats.py")]
    started = [
        subprocess.Popen(
            [sys.executable, *(free.get(each, each) for each in arguments)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _, *arguments in commands
    ]
    outputs = [process.communicate(timeout=240)[0].splitlines() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert "a stopped the sale after 10 seats" in outputs[0]
    copies = {lines[-1].partition("has the same copy: ")[2] for lines in outputs}
    assert len(copies) == 1
    got = [int(seat) for lines in outputs for seat in re.findall(r"\d+", lines[0])]
    assert sorted(got) == list(range(10)), "every seat is sold once"

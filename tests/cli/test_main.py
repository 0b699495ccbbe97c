"""The command line as a whole: what every command does when something is missing, refused or not read."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from tools.reorder_page import figure_2

from priocast.cli import main as command_line
from priocast.core.errors import GroupClosed
from support.command import priocast, refusal

WITHOUT = "import sys; sys.modules[sys.argv.pop(1)] = None; from priocast.cli.main import main; main()"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("main") / "figure-2"
    figure_2("reorder").write(directory, "figure-2")
    return str(directory)


def told(error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a user reads when a command fails like this."""

    def fail() -> None:
        raise error

    monkeypatch.setattr(command_line, "app", fail)
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    return line


def test_the_version_is_told() -> None:
    result = priocast("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"priocast {version('priocast')}\n", "")


def test_what_the_machine_refuses_is_one_line_with_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = told(PermissionError(13, "Permission denied", "/x/y"), monkeypatch, capsys)
    assert line == "error: cannot use /x/y: Permission denied; name another path, or correct this one"
    full = ExceptionGroup("tasks", [OSError(28, "No space left on device")])
    assert told(full, monkeypatch, capsys).startswith("error: No space left on device")
    both = ExceptionGroup("tasks", [OSError(9, "Bad file descriptor"), GroupClosed("the group was left")])
    assert told(both, monkeypatch, capsys) == "error: the group was left"


def test_a_fault_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ExceptionGroup("tasks", [OSError(5, "Input/output error"), AssertionError("ours")])

    monkeypatch.setattr(command_line, "app", fail)
    with pytest.raises(ExceptionGroup):
        command_line.main()


def test_an_exit_code_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()

    @app.command()
    def broken() -> None:
        raise typer.Exit(1)

    monkeypatch.setattr(command_line, "app", lambda: app([]))
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == 1


def test_a_path_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    said = refusal("keys", "group", str(tmp_path / ("long" * 100) / "tickets.key"))
    assert said.startswith("error: cannot use ")
    assert "File name too long; name another path" in said


@pytest.mark.parametrize("arguments", [("orders",), ("node", "--example-config"), ("--help",)])
def test_output_that_nobody_reads_ends_the_command_quietly(arguments: tuple[str, ...]) -> None:
    program = [sys.executable, "-c", "from priocast.cli.main import main; main()", *arguments]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as unread:
        result = subprocess.run(program, stdout=unread, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.parametrize("package", ["pyspark", "matplotlib"])
@pytest.mark.parametrize("command", ["verify", "report", "explain", "demo", "study classes", "study reorder"])
def test_without_the_packages_of_the_pipeline_it_says_what_to_install(
    command: str, package: str, trace: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = {
        "verify": [trace],
        "report": [trace, "--out", str(out)],
        "explain": [trace, "--worst", "--figure", str(out / "why.svg")],
    }
    arguments = [*command.split(), *options.get(command, ["--out", str(out)])]
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT, package, *arguments], capture_output=True, text=True, check=False
    )
    said = f"error: {package} is not installed: pip install 'priocast[pipeline]'\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", said)
    assert not out.exists()

"""Behaviour that all commands share: errors, exit codes, broken pipes, missing packages."""

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
from priocast.core.extras import EXTRA_OF
from support.command import command_error, priocast

WITHOUT = "import sys; sys.modules[sys.argv.pop(1)] = None; from priocast.cli.main import main; main()"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("main") / "figure-2"
    figure_2("reorder").write(directory, "figure-2")
    return str(directory)


def error_line(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """The line that a user reads when a command fails with this error."""

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


def test_version_is_printed() -> None:
    result = priocast("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"priocast {version('priocast')}\n", "")


def test_system_error_is_one_line_with_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = error_line(PermissionError(13, "Permission denied", "/x/y"), monkeypatch, capsys)
    assert line == "error: cannot use /x/y: Permission denied; choose another path or fix this one"
    full = ExceptionGroup("tasks", [OSError(28, "No space left on device")])
    assert error_line(full, monkeypatch, capsys).startswith("error: No space left on device")
    both = ExceptionGroup("tasks", [OSError(9, "Bad file descriptor"), GroupClosed("the group was left")])
    assert error_line(both, monkeypatch, capsys) == "error: the group was left"


def test_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ExceptionGroup("tasks", [OSError(5, "Input/output error"), AssertionError("ours")])

    monkeypatch.setattr(command_line, "app", fail)
    with pytest.raises(ExceptionGroup):
        command_line.main()


def test_exit_code_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()

    @app.command()
    def broken() -> None:
        raise typer.Exit(1)

    monkeypatch.setattr(command_line, "app", lambda: app([]))
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == 1


def test_path_that_cannot_be_created_is_one_line(tmp_path: Path) -> None:
    message = command_error("keys", "group", str(tmp_path / ("long" * 100) / "tickets.key"))
    assert message.startswith("error: cannot use ")
    assert "File name too long; choose another path" in message


@pytest.mark.parametrize("arguments", [("orders",), ("node", "--example-config"), ("--help",)])
def test_broken_pipe_ends_the_command_without_an_error(arguments: tuple[str, ...]) -> None:
    program = [sys.executable, "-c", "from priocast.cli.main import main; main()", *arguments]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as unread:
        result = subprocess.run(program, stdout=unread, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.parametrize("package", ["pyspark", "matplotlib", "pyarrow"])
@pytest.mark.parametrize("command", ["verify", "report", "explain", "demo", "study classes", "study reorder"])
def test_missing_pipeline_package_is_named_with_how_to_install_it(
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
    error = f"error: {package} is not installed: pip install 'priocast[{EXTRA_OF[package]}]'\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", error)
    assert not out.exists()

"""Checks that commands make before they start, so that no long run fails only when it writes its result."""

from collections.abc import Collection
from pathlib import Path

import typer

from priocast.core.errors import InvalidOption
from priocast.core.extras import check_installed
from priocast.operations.node_plan import check_wait
from priocast.operations.output_paths import (
    PNG,
    SVG,
    OutputKind,
    directory_problem,
    empty_directory_problem,
    file_problem,
    replacing_problem,
)
from priocast.trace.remote_directory import is_remote, local_path


def check_pipeline() -> None:
    """Raise if a package that Spark jobs or figures need is not installed."""
    check_installed("pyspark", "matplotlib", "pyarrow")


def check_directory(option: str, path: Path | None) -> None:
    """Raise if the directory, when one is given, cannot be created or written to."""
    _raise_if(option, directory_problem(path) if path is not None else "")


def check_location(option: str, location: str | None) -> None:
    """Raise if the location, when one is given, is a directory that cannot be created or written to.

    Whether a storage in the network takes files is known only when it is asked.
    """
    if location is not None and not is_remote(location):
        check_directory(option, local_path(location))


def check_file(option: str, path: Path | None) -> None:
    """Raise if the file, when one is given, cannot be written."""
    _raise_if(option, file_problem(path) if path is not None else "")


def check_replaceable(option: str, path: Path | None, kind: OutputKind) -> None:
    """Raise if the file, when one is given, cannot be written, or is not an earlier output of this kind."""
    _raise_if(option, replacing_problem(path, kind) if path is not None else "")


def check_figures(option: str, directory: Path | None, names: Collection[str]) -> None:
    """Raise if one of these figures cannot be written to the directory, when one is given."""
    if directory is not None:
        check_directory(option, directory)
        for name in names:
            check_replaceable(option, directory / f"{name}.svg", SVG)
            check_replaceable(option, directory / f"{name}.png", PNG)


def check_empty_directory(option: str, path: Path | None) -> None:
    """Raise if the directory, when one is given, cannot be created or is not empty."""
    _raise_if(option, empty_directory_problem(path) if path is not None else "")


def _raise_if(option: str, problem: str) -> None:
    if problem:
        raise InvalidOption(f"{option}: {problem}")


def check_seconds(parameter: typer.CallbackParam, seconds: float | None) -> float | None:
    """Reject a timeout that is not positive or not finite; for use as an option's callback."""
    if seconds is not None:
        check_wait(parameter.opts[0], seconds)
    return seconds


def first_given(context: typer.Context, except_for: Collection[str]) -> str | None:
    """The first parameter on the command line that is not one of these, as the user wrote it."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name not in except_for and source is not None and source.name == "COMMANDLINE":
            return parameter.opts[0] if parameter.param_type_name == "option" else name.upper()
    return None

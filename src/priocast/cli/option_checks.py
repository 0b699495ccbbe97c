"""What commands check before they begin, so that nothing is measured, or lost, in vain."""

from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

import typer

from priocast.core.errors import InvalidInput, InvalidOption
from priocast.operations.node_plan import check_wait
from priocast.operations.output_paths import directory_problem, file_problem

_PIPELINE_PACKAGES = ("pyspark", "matplotlib")


def check_pipeline() -> None:
    """Refuse to begin what ends in Spark or in figures where they are not installed."""
    for package in _PIPELINE_PACKAGES:
        if find_spec(package) is None:
            raise InvalidInput(f"{package} is not installed: pip install 'priocast[pipeline]'")


def check_directory(option: str, path: Path | None) -> None:
    """Refuse a directory, if one is named, that cannot be written to."""
    _refuse(option, directory_problem(path) if path is not None else "")


def check_file(option: str, path: Path | None) -> None:
    """Refuse a file, if one is named, that cannot be written."""
    _refuse(option, file_problem(path) if path is not None else "")


def check_report(option: str, path: Path) -> None:
    """Refuse a report that cannot be written aside, and then be renamed."""
    check_file(option, path)
    check_directory(option, path.parent)


def _refuse(option: str, stall_reason: str) -> None:
    if stall_reason:
        raise InvalidOption(f"{option}: {stall_reason}")


def check_seconds(parameter: typer.CallbackParam, seconds: float | None) -> float | None:
    """Refuse a time to wait that is none; as the callback of an option."""
    if seconds is not None:
        check_wait(parameter.opts[0], seconds)
    return seconds


def first_typed(context: typer.Context, besides: Collection[str]) -> str | None:
    """The first parameter that was typed and is not one of these."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in besides and source is not None and source.name == "COMMANDLINE":
            return name
    return None

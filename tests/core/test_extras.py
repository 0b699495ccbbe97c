"""Missing packages are named with the extra that installs them, as pyproject.toml declares it."""

import re
import tomllib
from pathlib import Path

import pytest

from priocast.core.errors import ExtraMissing
from priocast.core.extras import EXTRA_OF, check_installed, extra_missing

PROJECT = tomllib.loads((Path(__file__).parent.parent.parent / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("package", EXTRA_OF)
def test_the_extra_installs_the_package(package: str) -> None:
    declared = PROJECT["optional-dependencies"][EXTRA_OF[package]]
    names = {re.split(r"[\[><=;]", requirement)[0].replace("-", "_") for requirement in declared}
    assert package in names


def test_every_extra_for_use_is_in_all() -> None:
    [everything] = PROJECT["optional-dependencies"]["all"]
    named = set(everything.removeprefix("priocast[").removesuffix("]").split(","))
    for extra in named.copy():
        for requirement in PROJECT["optional-dependencies"][extra]:
            if requirement.startswith("priocast["):
                named |= set(requirement.removeprefix("priocast[").removesuffix("]").split(","))
    assert set(EXTRA_OF.values()) <= named


def test_an_installed_package_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRA_OF, "no_such_package", "sql")
    check_installed("msgspec")
    with pytest.raises(
        ExtraMissing, match=r"no_such_package is not installed: pip install 'priocast\[sql\]'"
    ):
        check_installed("msgspec", "no_such_package")


def test_a_failed_import_is_explained_if_an_extra_would_help() -> None:
    found = extra_missing(ImportError(name="pyarrow.parquet"))
    assert str(found) == "pyarrow is not installed: pip install 'priocast[trace]'"
    assert isinstance(found, ImportError)
    assert extra_missing(ImportError(name="somewhere")) is None
    assert extra_missing(ImportError()) is None

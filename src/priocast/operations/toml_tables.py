"""Reads the tables of a TOML file strictly and collects all their problems.

The tables are described by msgspec structs. An invalid value is reported with its key and left out; the rest
is read nevertheless, so that all problems of a file are reported together.
"""

import tomllib
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import msgspec

from priocast.core.errors import InvalidOption

Table = dict[str, Any]
Hook = Callable[[type, Any], Any]


class TableReader:
    """Reads one file. `hook` converts values to types that TOML does not have, such as paths."""

    def __init__(self, path: Path, hook: Hook) -> None:
        self._path = path
        self._hook = hook
        self._problems: list[str] = []

    def parse(self) -> Table:
        """Parse the file."""
        try:
            return tomllib.loads(self._path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidOption(
                f"cannot read {self._path}: {error.strerror or error}; choose a file that exists"
            ) from error
        except ValueError as error:
            raise InvalidOption(
                f"{self._path} is not valid TOML: {error}; correct it (a key must be unique in its table)"
            ) from error

    def table(
        self, key: str, raw: object, *kinds: type[msgspec.Struct], hidden: frozenset[str] = frozenset()
    ) -> Table:
        """The valid values of a table, by key. The first of the structs that has a key defines its type.

        A missing key is reported if it has no default. `hidden` fields are not accepted in files.
        """
        if not isinstance(raw, dict):
            self.problem(key, f"is {raw!r}: must be a table; write [{key}] and its keys below")
            return {}
        fields: dict[str, msgspec.structs.FieldInfo] = {}
        for kind in kinds:
            for field in msgspec.structs.fields(kind):
                if field.name not in hidden:
                    fields.setdefault(field.name, field)
        found = {}
        for name, field in fields.items():
            if name in raw:
                found[name] = self.value(_joined(key, name), raw[name], field.type)
            elif field.required:
                self.problem(_joined(key, name), "is missing: add it")
        self._find_unknown(key, raw, sorted(fields))
        return {name: value for name, value in found.items() if value is not None}

    def value(self, key: str, raw: object, kind: Any) -> Any:
        """One value, or None if it is invalid; nested tables are read in the same way."""
        struct = _struct_in(kind)
        if struct is not None:
            found = self.table(key, raw, struct)
            required = [field.name for field in msgspec.structs.fields(struct) if field.required]
            return struct(**found) if all(name in found for name in required) else None
        try:
            value = msgspec.convert(raw, kind, dec_hook=self._hook)
        except msgspec.ValidationError as error:
            self.problem(key, _sentence(str(error), raw))
            return None
        return (
            str(value) if isinstance(value, str) else value
        )  # the subclass of str was only needed for the check

    def problem(self, key: str, text: str) -> None:
        """Report what is wrong with a key, and what to do."""
        self._problems.append(f"{key}: {text}")

    def check(self) -> None:
        """Raise if there is any problem."""
        if self._problems:
            count = f"{len(self._problems)} problems" if len(self._problems) > 1 else "a problem"
            lines = "".join(f"\n  {problem}" for problem in self._problems)
            raise InvalidOption(f"{self._path} has {count}; nothing was started:{lines}")

    def _find_unknown(self, key: str, raw: Table, known: list[str]) -> None:
        for name in raw:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"the keys are: {', '.join(known)}"
                self.problem(_joined(key, name), f"is not a known key; {hint}")


def _joined(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct in a type, on its own or in a union with None."""
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return each
    return None


def _sentence(error: str, raw: object) -> str:
    """The error of msgspec with the value; those of our own checks contain it already."""
    ours = not error.startswith(("Expected", "Invalid"))
    return error if ours else f"is {raw!r}: {error[0].lower()}{error[1:]}"

"""What the text of a statement tells about its effect: which tables it writes, what it raises or lowers.

Only what is certain is told: a form that is not recognised has no known effect.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from priocast.sql.engine import SqlValue
from priocast.sql.statements import SqlToken, tokens_of, verb_of

_REMEMBERED_MAX = 256
_QUOTES = '"`[]'


class ColumnChange(msgspec.Struct, frozen=True):
    """A statement adds `amount` to a column, in all rows that it updates."""

    table: str
    column: str
    amount: float


def tables_in(sql: str) -> list[str]:
    """The tables that an INSERT, UPDATE or DELETE names as its target."""
    found = []
    tokens = _tokens_of(sql)
    for index, token in enumerate(tokens):
        if token.text in ("into", "update") or (token.text == "from" and tokens[index - 1].text == "delete"):
            target = _name_after(tokens, index)
            found += [target] if target else []
    return found


def column_changes(
    sql: str, parameters: Sequence[SqlValue] | Mapping[str, SqlValue]
) -> Iterator[ColumnChange]:
    """The changes of an UPDATE like `SET balance = balance - :amount`, with the value of the parameter."""
    if verb_of(sql) != "update":
        return
    tokens = [*_tokens_of(sql), SqlToken("end", "", 0, len(sql)), SqlToken("end", "", 0, len(sql))]
    table = next(iter(tables_in(sql)), "")
    positional = 0
    for index, token in enumerate(tokens):
        value: SqlValue = None
        if token.kind == "parameter":
            value = _value_of(token.text, positional, parameters)
            positional += token.text in ("?", "%s")
        elif token.kind == "number":
            value = float(token.text)
        if not isinstance(value, int | float) or index < 5:
            continue
        target, equals, column, sign = tokens[index - 4 : index]
        is_assignment = tokens[index - 5].text in ("set", ",") and equals.text == "="
        ends = tokens[index + 1].text in (",", "where", ";", "", "returning", "from")
        if is_assignment and ends and _name(target) == _name(column) and sign.text in ("+", "-"):
            yield ColumnChange(table, _name(column), value if sign.text == "+" else -value)


@lru_cache(_REMEMBERED_MAX)
def _tokens_of(sql: str) -> tuple[SqlToken, ...]:
    return tuple(tokens_of(sql))


def _name(token: SqlToken) -> str:
    return token.text.strip(_QUOTES).lower()


def _name_after(tokens: tuple[SqlToken, ...], index: int) -> str:
    """The name after a keyword, without the words of `UPDATE OR IGNORE` and without a schema."""
    rest = tokens[index + 1 :]
    if len(rest) > 2 and rest[0].text == "or":
        rest = rest[2:]
    if not rest or rest[0].kind not in ("word", "name"):
        return ""
    has_schema = len(rest) > 2 and rest[1].text == "."
    return _name(rest[2] if has_schema else rest[0])


def _value_of(
    mark: str, positional: int, parameters: Sequence[SqlValue] | Mapping[str, SqlValue]
) -> SqlValue:
    """The value of a parameter: `?`, `?2`, `%s`, `:name`, `@name`, `$name` or `%(name)s`."""
    if isinstance(parameters, Mapping):
        return parameters.get(mark.strip(":@$%()").removesuffix(")s"))
    index = int(mark[1:]) - 1 if mark[1:].isdecimal() else positional
    return parameters[index] if 0 <= index < len(parameters) else None

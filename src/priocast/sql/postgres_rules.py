"""Which statements PostgreSQL may execute in a replicated transaction: their text and its catalogue decide.

What a statement gives must not depend on the clock, on random numbers, on the machine, or on where rows are
stored: two replicas with equal rows may have them in a different physical order. What is not on the safe side
is rejected by name.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from priocast.core.errors import StatementRejected
from priocast.sql.engine import SqlValue
from priocast.sql.statements import SqlToken, only_statement, shortened, tokens_of, verb_of

_WRITES = {"insert", "update", "delete", "merge"}
_QUERIES = {"select", "values"}
_SCHEMA_VERBS = {"create", "alter", "drop"}
_SCHEMA_KINDS = {"table", "index", "view"}
_BETWEEN = {"unique", "or", "replace", "if", "exists"}

_BEFORE = "calculate it before and pass it as a parameter"
_CLOCK_WORDS = "current_timestamp current_date current_time localtime localtimestamp"
_REPLICA_WORDS = (
    "current_user session_user current_role current_catalog current_schema ctid xmin xmax cmin cmax tableoid"
)
_FLOAT_WORDS = "real float float4 float8 double"
_OTHER_WORDS = "tablesample collate system_user"
_SCHEMA_WORDS = {"temp", "temporary", "unlogged", "inherits", "concurrently", "partition"}
_WORDS = {
    **dict.fromkeys(_CLOCK_WORDS.split(), "reads the clock: write now(), which is the time of the order"),
    **dict.fromkeys(_REPLICA_WORDS.split(), "depends on this replica"),
    **dict.fromkeys(_FLOAT_WORDS.split(), "gives sums that depend on the order of the rows: use numeric"),
    **dict.fromkeys(_OTHER_WORDS.split(), "is not replicated"),
}
_CLOCKS = {"now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"}
"""Functions that the schema `priocast_clock` has, too, with the time of the order."""
_MACHINE_FUNCTIONS = (
    "acos acosd acosh asin asind asinh atan atand atanh atan2 atan2d cbrt cos cosd cosh cot cotd degrees erf "
    "erfc exp gamma lgamma ln log log10 pow power radians sin sind sinh tan tand tanh date_part corr "
    "percentile_cont"
)
_REPLICA_FUNCTIONS = (
    "age current_database current_schemas current_setting getdatabaseencoding version obj_description "
    "col_description shobj_description to_regclass to_regtype to_regproc format_type database_to_xml "
    "schema_to_xml table_to_xml query_to_xml cursor_to_xml has_table_privilege inet_client_addr "
    "inet_server_addr"
)
_TYPED_FUNCTIONS = (
    "json_populate_record json_populate_recordset json_to_record json_to_recordset json_table json_value "
    "json_query jsonb_populate_record jsonb_populate_recordset jsonb_to_record jsonb_to_recordset xmltable"
)
_FUNCTIONS = {
    **dict.fromkeys(_TYPED_FUNCTIONS.split(), "may read the clock, from text like 'now'"),
    **dict.fromkeys(_MACHINE_FUNCTIONS.split(), f"depends on the machine: {_BEFORE}"),
    **dict.fromkeys(_REPLICA_FUNCTIONS.split(), f"depends on this replica: {_BEFORE}"),
}
_NEED_ORDER = {
    *["array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "xmlagg"],
    *["row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"],
}
_DATE_TYPES = {"date", "time", "timetz", "timestamp", "timestamptz"}
_PLAIN_TYPES = (
    "int integer int2 int4 int8 bigint smallint numeric decimal text varchar char character bool boolean "
    "bytea uuid json jsonb interval bit varbit inet cidr"
)
_SAFE_TYPES = {*_PLAIN_TYPES.split(), *_DATE_TYPES}
_CLOCK_TEXTS = {"now", "today", "tomorrow", "yesterday"}
_DATE_WORDS = {*_CLOCK_TEXTS, "allballs"}
_ZONE_LENGTH_MAX = 5
_BEFORE_TABLES = {"table", "into", "references", "exists"}
_ENDS_FROM = {"where", "group", "having", "window", "order", "limit", "fetch", "offset", "union", "for"}


class PostgresJudgement(msgspec.Struct, frozen=True):
    """What is known of a statement: why it is rejected (empty if it is not), and where its parameters are."""

    rejected: str
    changes_schema: bool
    is_query: bool
    casts_to_dates: bool
    marks: tuple[tuple[int, str], ...]


class PostgresRules:
    """Judges statements; `is_volatile` and `keys_of` ask the catalogue, and what was found is kept.

    `is_volatile` says whether a function of this name may give something else each time. `keys_of` has the
    columns of a table's primary key, None if there is no such table.
    """

    def __init__(
        self, is_volatile: Callable[[str], bool], keys_of: Callable[[str], Sequence[str] | None]
    ) -> None:
        self._is_volatile = is_volatile
        self._keys_of = keys_of
        self._judged: dict[str, PostgresJudgement] = {}

    def forget(self) -> None:
        """The schema has changed."""
        self._judged.clear()

    def judge(self, sql: str, count_max: int = 1000) -> PostgresJudgement:
        """What a statement does."""
        found = self._judged.get(sql)
        if found is None:
            if len(self._judged) >= count_max:
                self._judged.clear()
            found = self._judged[sql] = self._judge(only_statement(sql))
        return found

    def _judge(self, sql: str) -> PostgresJudgement:
        tokens = list(tokens_of(sql))
        verb = verb_of(sql)
        why = next(self._reasons(tokens, verb), "")
        return PostgresJudgement(
            f"{why}: {shortened(sql)}" if why else "",
            verb in _SCHEMA_VERBS,
            verb in _QUERIES,
            any(
                _is_type(tokens, index) and _name(tokens[index]) in _DATE_TYPES
                for index in range(len(tokens))
            ),
            tuple((token.start, token.text) for token in tokens if token.kind == "parameter"),
        )

    def _reasons(self, tokens: list[SqlToken], verb: str) -> Iterator[str]:
        """Why a statement must not be in a transaction; nothing if it may."""
        yield from _of_the_verb(tokens, verb)
        for index, token in enumerate(tokens):
            if token.kind in ("word", "name"):
                yield from self._of_a_name(tokens, index)
            elif token.kind == "string":
                yield from _of_a_string(tokens, index)
            if _is_type(tokens, index):
                yield from _of_a_cast(tokens, index)
            if token.kind == "word" and token.text in ("limit", "fetch"):
                yield from self._of_a_limit(tokens, index)
        words = [token.text for token in tokens if token.kind == "word"]
        if verb == "select" and any(token.text == "into" and not token.depth for token in tokens):
            yield "SELECT INTO is not replicated: create the table, then insert"
        if (
            "distinct" in words
            and words[words.index("distinct") + 1 :][:1] == ["on"]
            and "order" not in words
        ):
            yield "DISTINCT ON without ORDER BY is not deterministic"

    def _of_a_name(self, tokens: list[SqlToken], index: int) -> Iterator[str]:
        token = tokens[index]
        name = _name(token)
        if name.startswith(("pg_", "priocast", "information_schema")):
            yield f"{name} belongs to this replica alone"
        if token.kind == "word" and name in _WORDS and not _is_qualified(tokens, index):
            yield f"{name} {_WORDS[name]}"
        if not _is_called(tokens, index):
            return
        if name in _DATE_TYPES and tokens[index + 2].kind != "number":
            yield f"{name}() may read the clock, from text like 'now'"
        if name in _FUNCTIONS:
            yield f"{name}() {_FUNCTIONS[name]}"
        if name in _NEED_ORDER and not any(each.text == "order" for each in tokens[index:]):
            yield f"{name}() without ORDER BY depends on where rows are stored"
        if name not in _CLOCKS and self._is_volatile(name):
            yield f"{name}() is not deterministic: {_BEFORE}"

    def _of_a_limit(self, tokens: list[SqlToken], index: int) -> Iterator[str]:
        """LIMIT needs an ORDER BY that leaves nothing open: with the primary key."""
        depth = tokens[index].depth
        before = [*_same_level(tokens[:index], depth)]
        words = [token.text for token in before]
        if "order" not in words:
            yield "LIMIT without ORDER BY is not deterministic"
            return
        tables = [*_tables_from(before)]
        keys = self._keys_of(tables[0]) if len(tables) == 1 and tables[0] else ()
        ordered = {_name(token) for token in before[_last(words, "order") :]}
        if tables and keys is not None and (not keys or not ordered.issuperset(keys)):
            yield "LIMIT needs one table, and an ORDER BY that ends with its primary key"


def check_values(judgement: PostgresJudgement, values: Sequence[SqlValue], sql: str) -> None:
    """Raise if a parameter would read the clock: a text like 'now' that is cast to a date or a time."""
    if judgement.casts_to_dates:
        for value in values:
            if isinstance(value, str) and _may_be_now(value):
                raise StatementRejected(f"{value!r} as a date reads the clock: {shortened(sql)}")


def _of_the_verb(tokens: list[SqlToken], verb: str) -> Iterator[str]:
    if verb in _SCHEMA_VERBS:
        yield from (
            f"{token.text.upper()} is not replicated" for token in tokens if token.text in _SCHEMA_WORDS
        )
        kinds = [token.text for token in tokens[1:5] if token.text not in _BETWEEN]
        if not kinds or kinds[0] not in _SCHEMA_KINDS:
            what = kinds[0].upper() if kinds else ""
            yield f"{verb.upper()} {what} is not replicated: tables, indexes and views are"
    elif verb not in _WRITES | _QUERIES:
        yield f"{verb.upper()} is not replicated"


def _of_a_string(tokens: list[SqlToken], index: int) -> Iterator[str]:
    token = tokens[index]
    before = tokens[index - 1] if index else None
    if before and before.kind == "word" and before.start + len(before.text) == token.start:
        yield "strings with escapes are not understood here: pass the text as a parameter"
    if _may_be_now(token.text.strip("'")):
        yield f"{token.text} may read the clock: pass the text as a parameter"


def _may_be_now(text: str) -> bool:
    """Whether a text as a date or a time reads the clock: 'now', or 'tomorrow 12:00 CET'."""
    words = text.lower().replace(",", " ").split()
    is_prose = any(word.isalpha() and len(word) > _ZONE_LENGTH_MAX for word in {*words} - _DATE_WORDS)
    return not is_prose and not _CLOCK_TEXTS.isdisjoint(words)


def _of_a_cast(tokens: list[SqlToken], index: int) -> Iterator[str]:
    """Only a constant or a parameter may become a date: text in a column could be 'now'."""
    name = _name(tokens[index])
    if name not in _SAFE_TYPES:
        yield f"a cast to {name} is not known to be deterministic"
    if name in _DATE_TYPES and tokens[index - 2].kind not in ("string", "parameter"):
        yield f"a cast to {name} may read the clock: use to_timestamp, to_date or date_trunc"


def _is_type(tokens: list[SqlToken], index: int) -> bool:
    """Whether a token is the type in `x::date` or `CAST(x AS date)`."""
    if index < 2 or tokens[index].kind not in ("word", "name"):
        return False
    before = tokens[index - 1]
    if before.text != "as":
        return before.text == "::"
    opening = [
        each for each in range(index) if tokens[each].text == "(" and tokens[each].depth == before.depth - 1
    ]
    return bool(opening) and opening[-1] > 0 and tokens[opening[-1] - 1].text == "cast"


def _name(token: SqlToken) -> str:
    return token.text.strip('"').lower()


def _is_called(tokens: list[SqlToken], index: int) -> bool:
    """Whether a name is that of a function: a parenthesis follows, and no table is expected here."""
    if index + 1 >= len(tokens) or tokens[index + 1].text != "(":
        return False
    before = tokens[index - 1].text if index else ""
    is_index = before == "on" and tokens[0].text == "create"
    return before not in _BEFORE_TABLES and not is_index


def _is_qualified(tokens: list[SqlToken], index: int) -> bool:
    return index > 0 and tokens[index - 1].text == "."


def _same_level(tokens: list[SqlToken], depth: int) -> list[SqlToken]:
    """The tokens of the innermost query: those at this depth, since the parenthesis that encloses it."""
    begin = 0
    for index, token in enumerate(tokens):
        if token.depth < depth:
            begin = index + 1
    return [token for token in tokens[begin:] if token.depth == depth]


def _last(words: list[str], word: str) -> int:
    return len(words) - 1 - words[::-1].index(word)


def _tables_from(tokens: list[SqlToken]) -> Iterator[str]:
    """The tables of a FROM clause; an empty name for what is none."""
    words = [token.text for token in tokens]
    if "from" not in words:
        return
    expected = False
    for token in tokens[_last(words, "from") :]:
        if token.text in _ENDS_FROM:
            return
        if token.text in ("from", "join", ","):
            expected = True
        elif expected:
            expected = False
            yield _name(token) if token.kind in ("word", "name") else ""

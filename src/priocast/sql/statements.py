"""What the text of a statement tells without a database: where it ends, what it does, what it leaves open.

SQL is split into tokens, so that comments, strings and quoted names do not mislead. Nothing is rewritten: the
text that a user wrote is the text that the database gets.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from priocast.core.errors import StatementRejected

STATEMENT_LENGTH_MAX = 100_000

_TOKEN = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\*.*?(?:\*/|\Z) )
  | (?P<space> \s+ )
  | (?P<string> '(?:[^']|'')*(?:'|\Z) | \$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z) )
  | (?P<name> "(?:[^"]|"")*(?:"|\Z) | `[^`]*(?:`|\Z) | \[[^\]]*(?:\]|\Z) )
  | (?P<word> [^\W\d]\w* )
  | (?P<number> (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)? )
  | (?P<cast> :: )
  | (?P<parameter> [:@$]\w+ | \?\d* | %\(\w+\)s | %s )
  | (?P<sign> <= | >= | <> | != | \|\| | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_REMEMBERED_MAX = 256
_VERBS = {"select", "values", "insert", "replace", "update", "delete", "merge"}
_QUERIES = {"select", "values"}


class SqlToken(NamedTuple):
    """A token that matters: its kind, its text (words in lower case) and how many parentheses are open."""

    kind: str
    text: str
    depth: int
    start: int


def tokens_of(sql: str) -> Iterator[SqlToken]:
    """The tokens of a text without comments and spaces; both parentheses have the depth outside of them."""
    depth = 0
    for found in _TOKEN.finditer(sql):
        kind = found.lastgroup or "sign"
        kind = "string" if kind == "tag" else kind
        if kind in ("comment", "space"):
            continue
        text = found[0].lower() if kind == "word" else found[0]
        depth -= text == ")"
        yield SqlToken(kind, text, depth, found.start())
        depth += text == "("


def split_statements(sql: str) -> list[str]:
    """The statements of a script, without the semicolons between them; triggers are kept whole."""
    statements, rest = complete_statements(sql)
    is_empty = next(tokens_of(rest), None) is None
    return statements if is_empty else [*statements, rest.strip()]


def complete_statements(sql: str) -> tuple[list[str], str]:
    """The statements of a text that end with a semicolon, and the rest of the text."""
    statements: list[str] = []
    begin, blocks, words = 0, 0, 0
    is_trigger = False
    for token in tokens_of(sql):
        if token.text == ";" and blocks <= 0:
            if words:
                statements.append(sql[begin : token.start].strip())
            begin, blocks, words, is_trigger = token.start + 1, 0, 0, False
            continue
        words += 1
        if token.kind == "word":
            is_trigger |= token.text == "trigger" and words <= 3
            blocks += token.text == "case" or (token.text == "begin" and is_trigger)
            blocks -= token.text == "end"
    return statements, sql[begin:]


@lru_cache(_REMEMBERED_MAX)
def only_statement(sql: str) -> str:
    """The one statement of a text; raises an error if there are none, several, or a very long one."""
    if not isinstance(sql, str):
        raise StatementRejected(f"a statement must be text, not {type(sql).__name__}")
    if len(sql) > STATEMENT_LENGTH_MAX:
        raise StatementRejected(
            f"a statement must have at most {STATEMENT_LENGTH_MAX:,} characters, not {len(sql):,}: "
            "pass values as parameters"
        )
    statements = split_statements(sql)
    if len(statements) != 1:
        raise StatementRejected(f"one statement is expected, not {len(statements)}: {shortened(sql)}")
    return statements[0]


@lru_cache(_REMEMBERED_MAX)
def verb_of(sql: str) -> str:
    """What a statement does: its first word, or the one after the common table expressions of WITH."""
    words = (token for token in tokens_of(sql) if token.kind == "word" and token.depth == 0)
    first = next(words, None)
    if first is None:
        return ""
    if first.text != "with":
        return first.text
    return next((token.text for token in words if token.text in _VERBS), "with")


def is_query(sql: str) -> bool:
    """Whether a statement returns rows and changes nothing, as far as its text tells."""
    return verb_of(sql) in _QUERIES


def has_unordered_limit(sql: str) -> bool:
    """Whether a SELECT has a LIMIT without an ORDER BY: then the database decides which rows are meant."""
    ordered: dict[int, bool] = {}
    for token in tokens_of(sql):
        if token.text == "(":
            ordered[token.depth + 1] = False
        if token.kind != "word":
            continue
        if token.text == "order":
            ordered[token.depth] = True
        elif token.text in ("limit", "fetch") and not ordered.get(token.depth, False):
            return True
    return False


def shortened(sql: str, length: int = 80) -> str:
    """The begin of a statement on one line, for messages."""
    line = " ".join(sql.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"

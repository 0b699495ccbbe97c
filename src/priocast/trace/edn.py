"""EDN, the notation in which Jepsen and Elle keep histories: the part of it that histories use.

Integers, keywords, strings, `nil`, `true`, `false`, vectors and maps. A keyword is a `Keyword`; the others
are Python's values. What comes from a file has limits on its length and on its depth.
"""

import re
from collections.abc import Iterator

from priocast.core.errors import InvalidInput

TEXT_LENGTH_MAX = 1 << 20
_DEPTH_MAX = 16
_INTEGER_BITS_MAX = 63
_TOKEN = re.compile(r'[\s,]*([\[\]{}]|"(?:[^"\\]|\\.)*"|:?[A-Za-z0-9_*+!?<>=./-]+|\S)')
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_NAMES: dict[str, bool | None] = {"nil": None, "true": True, "false": False}
_WRITTEN = {value: name for name, value in _NAMES.items()}
_TO_ESCAPE = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})
_CLOSING = {"[": "]", "{": "}"}


class Keyword(str):
    """A name of EDN, without its colon."""

    __slots__ = ()


def write_edn(value: object) -> str:
    """A value as EDN, on one line."""
    if value is None or isinstance(value, bool):
        return _WRITTEN[value]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{write_edn(key)} {write_edn(of)}" for key, of in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(write_edn, value)) + "]"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f":{value}" if isinstance(value, Keyword) else f'"{value.translate(_TO_ESCAPE)}"'
    raise InvalidInput(f"{type(value).__name__} has no form in a history")


def read_edn(text: str) -> object:
    """The value that a text holds; `InvalidInput` says what is wrong with it."""
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidInput(f"a value has {len(text):,} characters: {TEXT_LENGTH_MAX:,} at most are read")
    tokens = iter(_TOKEN.findall(text))
    value = _value(next(tokens, ""), tokens, 0)
    rest = next(tokens, "")
    if rest:
        raise InvalidInput(f"{rest!r} follows the value")
    return value


def _value(token: str, tokens: Iterator[str], depth: int) -> object:
    if token in _CLOSING:
        return _collection(token, tokens, depth + 1)
    if _INTEGER.fullmatch(token):
        number = int(token)
        if number.bit_length() > _INTEGER_BITS_MAX:
            raise InvalidInput(f"{token} does not fit into {_INTEGER_BITS_MAX + 1} bits")
        return number
    if token in _NAMES:
        return _NAMES[token]
    if token[:1] == ":" and len(token) > 1:
        return Keyword(token[1:])
    if token[:1] == '"' and len(token) > 1:
        return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), token[1:-1])
    raise InvalidInput(f"{token!r} is not a value of a history" if token else "the value ends too early")


def _collection(opening: str, tokens: Iterator[str], depth: int) -> object:
    if depth > _DEPTH_MAX:
        raise InvalidInput(f"vectors and maps are nested more than {_DEPTH_MAX} deep")
    values = []
    while (token := next(tokens, "")) != _CLOSING[opening]:
        values.append(_value(token, tokens, depth))
    if opening == "[":
        return values
    keys = values[::2]
    if len(values) % 2 or any(isinstance(key, list | dict) for key in keys):
        raise InvalidInput("a map has a key without a value, or a key that is a collection")
    return dict(zip(keys, values[1::2], strict=True))

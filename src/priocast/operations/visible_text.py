"""Text of others on a terminal or in a log: every character is seen, and none acts.

Payloads, and texts that another process sent, may contain newlines that forge a line, escape sequences that a
terminal obeys, and marks that reverse or hide what follows. They are shown as escapes instead.
"""

import re

# Control characters, invisible ones, line separators, bidirectional marks, surrogates and tags. The two
# joiners U+200C and U+200D are left: scripts and emoji need them, and they change only their neighbours.
_HIDDEN_ABOVE_ASCII = (
    "\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_HIDDEN = re.compile(f"[\x00-\x1f{_HIDDEN_ABOVE_ASCII}]")
_HIDDEN_IN_JSON = re.compile(f"[{_HIDDEN_ABOVE_ASCII}]")


def visible(text: str) -> str:
    r"""The text on one line, with an escape such as `\n` or `\x1b` for each character that would act."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_bytes(content: bytes) -> str:
    r"""The content as visible text; bytes that are not UTF-8 are shown as `\xff`."""
    return visible(content.decode(errors="backslashreplace"))


def visible_json(document: str) -> str:
    """A JSON document with JSON's own escapes for characters that would act on a terminal."""
    return _HIDDEN_IN_JSON.sub(_json_escape, document)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index] << 8 | units[index + 1]:04x}" for index in range(0, len(units), 2))

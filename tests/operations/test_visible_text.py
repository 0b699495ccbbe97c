"""Text of others: nothing in it acts on a terminal or forges a line."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.operations.visible_text import visible, visible_bytes, visible_json

JOINERS = {"\u200c", "\u200d"}
VISIBLE_FORMATS = {  # signs of Arabic, Syriac, Kaithi, shorthand and music that are drawn or only lay out
    *map(chr, range(0x600, 0x606)), "\u06dd", "\u070f", "\u0890", "\u0891", "\u08e2",
    *map(chr, range(0x13430, 0x13440)), "\U000110bd", "\U000110cd",
    *map(chr, range(0x1BCA0, 0x1BCA4)), *map(chr, range(0x1D173, 0x1D17B)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two seats, please: größer 座席 \U0001f3ab", "two seats, please: größer 座席 \U0001f3ab"),
        ("a\n    12  b        224  forged", r"a\n    12  b        224  forged"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\x9b31m\r\x08\t\x00", r"\x9b31m\r\x08\t\x00"),
        ("safe\u202egnp.exe\u2066", r"safe\u202egnp.exe\u2066"),
        ("a\u2028b\u2029c\x85d", r"a\u2028b\u2029c\x85d"),
        ("\U000e0041\ufeff", r"\U000e0041\ufeff"),
    ],
)
def test_characters_that_act_are_shown_as_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible_bytes(text.encode()) == shown


def test_bytes_that_are_no_text_are_shown() -> None:
    assert visible_bytes(b"\xff\xfe ok \x80") == r"\xff\xfe ok \x80"


def test_every_character_of_the_unicode_categories_that_act_is_escaped() -> None:
    acting = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    missed = [
        character
        for character in map(chr, range(0x110000))
        if unicodedata.category(character) in acting
        and visible(character) == character
        and character not in JOINERS | VISIBLE_FORMATS
    ]
    assert missed == []


@given(st.text())
def test_the_result_is_one_line_and_json_stays_json(text: str) -> None:
    assert len(visible(text).splitlines()) <= 1
    document = visible_json(json.dumps({"payload": text}, ensure_ascii=False))
    assert json.loads(document) == {"payload": text}
    assert visible(document) == document

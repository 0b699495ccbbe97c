"""The ids of processes and messages, and which names are valid."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.core.errors import InvalidInput
from priocast.core.identity import NAME_LENGTH_MAX, MessageId, ProcessId, check_name


def test_ids_read_as_in_traces_and_error_messages() -> None:
    sender = ProcessId("a", 3)
    assert str(sender) == "a#3"
    assert str(MessageId(sender, 224, 7)) == "a#3/224/7"


def test_a_restart_is_another_process_and_a_later_one() -> None:
    assert ProcessId("a", 1) != ProcessId("a", 2)
    assert ProcessId("a", 1) < ProcessId("a", 2) < ProcessId("b", 1)


def test_messages_sort_by_sender_then_level_then_number() -> None:
    ids = [
        MessageId(ProcessId(name), level, number) for name in "ab" for level in (0, 9) for number in (0, 9)
    ]
    assert sorted(ids, reverse=True) == ids[::-1]


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True))
def test_valid_names_are_returned_unchanged(name: str) -> None:
    assert check_name(name, of="group") == name


@pytest.mark.parametrize(
    "wrong", ["", "-a", ".a", "a b", "a/b", "a\n", "ä", "a" * (NAME_LENGTH_MAX + 1), 7, None]
)
def test_an_invalid_name_is_rejected_with_what_it_is_for(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot be the name of a member: use 1 to 64 letters"):
        check_name(wrong, of="member")

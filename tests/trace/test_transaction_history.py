"""Histories in EDN: what is written is read again, and what is damaged is rejected with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.core.errors import InvalidInput
from priocast.trace.edn import Keyword, read_edn, write_edn
from priocast.trace.transaction_history import HistoryEvent, rank_of, read_event, settled_of, steps_of

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
    | st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).map(Keyword)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(LEAVES, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_values_are_read_as_they_were_written(value: object) -> None:
    assert read_edn(write_edn(value)) == value


@given(st.text(st.sampled_from('[]{}:"\\ 0a,-'), max_size=40))
def test_any_text_is_a_value_or_invalid_input(text: str) -> None:
    try:
        value = read_edn(text)
    except InvalidInput:
        return
    assert read_edn(write_edn(value)) == value


@pytest.mark.parametrize("text", ["", "[1", "{:a}", "{[1] 2}", "1 2", "]", "[" * 100, "9" * 19, "'a"])
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_edn(text)


def test_an_event_is_a_line_that_elle_reads() -> None:
    value = [[Keyword("append"), 5, 1], [Keyword("r"), 5, [1]]]
    event = HistoryEvent(
        type="ok", process=3, function="txn", value=value, time_ns=29, index=1, rank=rank_of(8)
    )
    line = event.to_edn()
    assert line == (
        "{:index 1, :type :ok, :process 3, :time 29, :f :txn, :value [[:append 5 1] [:r 5 [1]]], :position 8}"
    )
    assert read_event(line) == event
    assert steps_of(event) == [("append", 5, [1]), ("r", 5, [1])]


def test_reads_without_a_result_are_no_steps() -> None:
    line = "{:type :info, :process 0, :f :txn, :value [[:r 1 nil] [:w 1 2]], :index 7}"
    assert steps_of(read_event(line)) == [("w", 1, [2])]


def test_a_read_follows_a_position() -> None:
    line = "{:type :ok, :process 0, :f :read, :value {1 5}, :index 7, :time 1, :after 9}"
    assert read_event(line).rank == rank_of(9) + 1
    assert steps_of(read_event(line)) == [("r", 1, [5])]
    assert read_event(line.replace(":after 9", ":after -1")).rank == -1, "before everything"


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "{:type :ok, :process 0, :f :txn, :value [], :index -1}",
        '{:type :ok, :process "a", :f :txn, :value [], :index 1}',
        "{:type :ok, :process 0, :f 5, :value [], :index 1}",
        "{:type :ok, :process 0, :f :txn, :value [[:r 1]], :index 1}",
        "{:type :ok, :process 0, :f :txn, :value [[:cas 1 2]], :index 1}",
        "{:type :ok, :process 0, :f :txn, :value [[:w 1 :a]], :index 1}",
        "{:type :ok, :process 0, :f :txn, :value 7, :index 1}",
        "{:type :ok, :process 0, :f :transfer, :value {:from 1}, :index 1}",
        "{:type :ok, :process 0, :f :enqueue, :value 7, :index 1}",
    ],
)
def test_a_damaged_event_is_rejected(line: str) -> None:
    with pytest.raises(InvalidInput):
        steps_of(read_event(line))


@pytest.mark.parametrize("value", ["5", "[[1]]", "[[:a 1]]"])
def test_damaged_settlements_are_rejected(value: str) -> None:
    event = read_event(f"{{:type :info, :process :nemesis, :f :settled, :value {value}, :index 1}}")
    with pytest.raises(InvalidInput):
        settled_of(event)

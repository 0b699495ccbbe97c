"""Explanations of messages, from traces of small groups with known events."""

from pathlib import Path

import pytest
from tools.scripted_group import ScriptedGroup

from priocast.core.errors import InvalidInput
from priocast.core.identity import MessageId, ProcessId
from priocast.core.priority import BACKGROUND, ROUTINE, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.trace.explanation import ConsumptionCut, Explanation, explain, find_message, find_worst
from priocast.trace.explanation_text import describe
from priocast.trace.queues import QueueKind
from priocast.trace.recorded_run import RecordedRun, open_run

ORDERS = ("reorder", "reorder-locks")


def recorded(group: ScriptedGroup, directory: Path) -> RecordedRun:
    group.write(directory / "run", "run")
    return open_run(directory / "run")


def message(sender: str, level: int, number: int = 0) -> MessageId:
    return MessageId(ProcessId(sender), level, number)


def with_one_consumed(order: str) -> ScriptedGroup:
    """Three low messages are queued everywhere, b has consumed one, and c broadcasts an urgent one."""
    group = ScriptedGroup("abc", order)
    group.broadcast("a", BACKGROUND, b"1", b"2", b"3")
    group.settle()
    group.consume("b")
    group.broadcast("c", URGENT, b"h")
    group.finish()
    return group


def names(explanation: Explanation, what: str) -> dict[str, list[str]]:
    """What happened to which messages at each member, by numbers."""
    return {
        wait.process: [str(entry.message.number) for entry in getattr(wait, what)]
        for wait in explanation.waits
        if wait.kind is QueueKind.MEMBER
    }


@pytest.mark.parametrize("order", ORDERS)
def test_the_queues_of_the_members(order: str, tmp_path: Path) -> None:
    explanation = explain(recorded(with_one_consumed(order), tmp_path), message("c", URGENT))
    assert explanation.position == 1
    assert explanation.priority == URGENT
    assert names(explanation, "gone") == {"a#1": [], "b#1": ["0"], "c#1": []}
    assert names(explanation, "before") == {"a#1": ["0", "1", "2"], "b#1": ["1", "2"], "c#1": ["0", "1", "2"]}
    assert names(explanation, "overtaken") == {"a#1": ["1", "2"], "b#1": ["1", "2"], "c#1": ["1", "2"]}
    assert names(explanation, "not_overtaken") == {"a#1": ["0"], "b#1": [], "c#1": ["0"]}
    assert explanation.cut == ConsumptionCut(0, "b#1")
    assert explanation.consumers == {"a#1/32/0": ("b#1",)}
    assert all(wait.waited_ns is not None and wait.waited_ns >= 0 for wait in explanation.waits)


def test_a_message_that_no_member_had_consumed_is_overtaken_everywhere(tmp_path: Path) -> None:
    group = ScriptedGroup("ab", "reorder")
    group.broadcast("a", BACKGROUND, b"1")
    group.settle()
    group.broadcast("b", URGENT, b"h")
    group.finish()
    explanation = explain(recorded(group, tmp_path), message("b", URGENT))
    assert explanation.cut is None
    assert [str(entry.message) for entry in explanation.overtaken] == ["a#1/32/0"]
    text = "\n".join(describe(explanation))
    assert "The cut: no member had consumed anything when it arrived" in text
    assert "locked" not in text


def test_with_locks_the_text_has_what_it_locked_and_where_it_was_inserted(tmp_path: Path) -> None:
    explanation = explain(recorded(with_one_consumed("reorder-locks"), tmp_path), message("c", URGENT))
    assert names(explanation, "locked") == {"a#1": ["0", "1", "2"], "b#1": ["1", "2"], "c#1": ["0", "1", "2"]}
    assert explanation.insertion_point == message("a", BACKGROUND, 1)
    lines = list(describe(explanation))
    assert lines.count("  locked by it:       a#1/32/0 a#1/32/1 a#1/32/2") == 2
    reach = "b#1 had consumed the most when it arrived, up to position 0"
    assert f"The insertion point: before a#1/32/1; {reach}." in lines
    assert not any("cut" in line for line in lines)


def test_nothing_is_locked_before_a_message_that_is_at_least_as_urgent(tmp_path: Path) -> None:
    """The queue is l h k when m arrives: b had consumed l when h arrived there, and k arrived after h."""
    group = ScriptedGroup("ab", "reorder-locks")
    group.broadcast("a", BACKGROUND, b"l")
    group.settle()
    group.consume("b")
    for level in (URGENT, BACKGROUND, ROUTINE):
        group.broadcast("a", level, b"x")
        group.settle()
    group.finish()
    run = recorded(group, tmp_path)
    assert names(explain(run, message("a", ROUTINE)), "before") == {"a#1": ["0", "0", "1"], "b#1": ["0", "1"]}
    assert names(explain(run, message("a", ROUTINE)), "locked") == {"a#1": ["1"], "b#1": ["1"]}
    lines = list(describe(explain(run, message("a", BACKGROUND, 1))))
    assert lines.count("  locked by it:       nothing") == 2
    assert any(line.startswith("The insertion point: at the end of the queue; ") for line in lines)


def test_with_locks_the_insertion_point_is_unknown_if_no_member_consumed_the_message(tmp_path: Path) -> None:
    group = ScriptedGroup("ab", "reorder-locks")
    group.broadcast("a", BACKGROUND, b"1")
    group.settle()
    text = "\n".join(describe(explain(recorded(group, tmp_path), message("a", BACKGROUND))))
    assert "The insertion point: unknown, because no member consumed it; " in text


def test_the_text_has_who_consumed_what_it_did_not_overtake(tmp_path: Path) -> None:
    explanation = explain(recorded(with_one_consumed("reorder"), tmp_path), message("c", URGENT))
    lines = list(describe(explanation))
    assert lines[0] == "c#1/224/0 (priority urgent, 224) is at position 1 of view 1@a#1, ordered by reorder."
    assert "  queue with it:      a#1/32/0 [c#1/224/0] a#1/32/1 a#1/32/2" in lines
    assert lines.count("  not a#1/32/0, which b#1 had consumed when it arrived there") == 2
    assert lines[-1] == "It overtook 2 messages at a#1, b#1 and c#1: a#1/32/1 and a#1/32/2."


def test_long_queues_are_shown_around_the_message(tmp_path: Path) -> None:
    group = ScriptedGroup("ab", "reorder")
    group.broadcast("a", BACKGROUND, *[b"x"] * 30)
    group.settle()
    group.consume("a", 12)
    group.broadcast("b", ROUTINE, b"h")
    group.finish()
    lines = list(describe(explain(recorded(group, tmp_path), message("b", ROUTINE)), names_max=4))
    shown = [line for line in lines if "queue with it" in line]
    assert shown == [
        "  queue with it:      [b#1/96/0] a#1/32/12 a#1/32/13 a#1/32/14 (15 more)",
        "  queue with it:      (10 more) a#1/32/10 a#1/32/11 [b#1/96/0] a#1/32/12 (17 more)",
    ]
    assert "  already consumed:   12 messages, the last one a#1/32/11" in lines
    assert lines[-1].endswith("a#1/32/12, a#1/32/13, a#1/32/14, a#1/32/15 and 14 more.")


def test_a_sequencers_queue_is_explained_where_the_message_waited(tmp_path: Path) -> None:
    """The window lets one message at a time be ordered, so the others wait at the sequencer."""
    group = ScriptedGroup("abc", "sequencer-ub", OrderingOptions(window=1))
    group.broadcast("b", BACKGROUND, b"1", b"2", b"3")
    group.settle()
    group.broadcast("c", URGENT, b"h")
    group.finish()
    explanation = explain(recorded(group, tmp_path), message("c", URGENT))
    kinds = [(wait.kind, wait.process) for wait in explanation.waits]
    assert kinds == [(QueueKind.SENDER, "c#1"), (QueueKind.ORDERER, "a#1")]
    assert [str(entry.message) for entry in explanation.overtaken] == ["b#1/32/1", "b#1/32/2"]
    assert explanation.cut is None
    text = "\n".join(describe(explanation))
    assert "In the queue of a#1, which assigns the positions: ordered after" in text
    assert "The cut" not in text


def test_an_undelivered_message_is_explained_as_far_as_possible(tmp_path: Path) -> None:
    group = ScriptedGroup("ab", "reorder")
    group.broadcast("a", BACKGROUND, b"1")
    group.arrive("a", "b", 1)
    explanation = explain(recorded(group, tmp_path), message("a", BACKGROUND))
    assert explanation.position is None
    lines = list(describe(explanation))
    assert lines[0].startswith(
        "a#1/32/0 (priority background, 32) was not delivered; it was last seen in view"
    )
    assert "In the queue of b#1: never consumed there" in lines
    assert lines[-1] == "It overtook nothing."


def test_the_worst_message_overtook_the_most(tmp_path: Path) -> None:
    group = ScriptedGroup("ab", "reorder")
    group.broadcast("a", BACKGROUND, *[b"x"] * 5)
    group.settle()
    group.broadcast("a", ROUTINE, b"middle")
    group.settle()
    group.consume("a", 3)
    group.broadcast("b", URGENT, b"late")
    group.finish()
    run = recorded(group, tmp_path)
    assert find_worst(run) == message("a", ROUTINE)
    assert len(explain(run, find_worst(run)).overtaken) == 5


def test_in_a_plain_group_nothing_is_overtaken(tmp_path: Path) -> None:
    group = ScriptedGroup("ab", "reorder", OrderingOptions(prioritised=False))
    group.broadcast("a", BACKGROUND, b"1")
    group.settle()
    group.broadcast("b", URGENT, b"h")
    group.finish()
    explanation = explain(recorded(group, tmp_path), message("b", 0))
    assert (explanation.priority, explanation.position) == (URGENT, 1)
    assert explanation.overtaken == []
    assert "ordered by reorder, plain" in next(describe(explanation))


@pytest.mark.parametrize("wrong", ["nonsense", "c#1/224/1", "c#2/224/0", "", "c#1/224/0/0"])
def test_an_unknown_id_lists_some_messages_of_the_trace(wrong: str, tmp_path: Path) -> None:
    run = recorded(with_one_consumed("reorder"), tmp_path)
    with pytest.raises(
        InvalidInput, match="some messages of this trace: a#1/32/0, a#1/32/1, a#1/32/2, c#1/224/0"
    ):
        find_message(run, wrong)


def test_a_message_is_found_by_its_id(tmp_path: Path) -> None:
    run = recorded(with_one_consumed("reorder"), tmp_path)
    assert find_message(run, " a#1/32/2 ") == message("a", BACKGROUND, 2)


def test_several_runs_are_rejected(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with_one_consumed("reorder").write(tmp_path / name, name)
    with pytest.raises(InvalidInput, match="contains 2 runs: give one of them"):
        open_run(tmp_path)


def test_a_trace_without_messages_has_no_worst_one(tmp_path: Path) -> None:
    group = ScriptedGroup("ab", "reorder")
    with pytest.raises(InvalidInput, match="the trace has no message that was in a queue"):
        find_worst(recorded(group, tmp_path))

"""The budget of a lone message: which messages count, and how their time is divided."""

from benchmarks.budget import STAGES, lone_messages, stages_of, table
from benchmarks.noted_member import CODEC_DONE, HANDLED, READ, WRITE, WRITTEN, Event, Notes, OwnMessage

MESSAGE = OwnMessage(called_at=100, returned_at=140, delivered_at=1_000)
SENDER: list[Event] = [
    (50, WRITE),  # before the message
    (110, WRITE),
    (130, WRITTEN),
    (700, READ),
    (720, CODEC_DONE),
    (800, WRITE),
    (810, WRITTEN),
    (900, HANDLED),
]
SEQUENCER: list[Event] = [
    (200, READ),
    (230, CODEC_DONE),
    (400, WRITE),
    (450, WRITTEN),
    (460, WRITE),
    (470, WRITTEN),
    (500, HANDLED),
]


def test_the_stages_of_a_lone_message_add_up_to_its_time() -> None:
    stages = stages_of(SENDER, SEQUENCER, MESSAGE)
    assert stages == [10, 20, 70, 30, 170, 50, 250, 20, 180, 100]
    assert sum(stages) == MESSAGE.delivered_at - MESSAGE.called_at
    assert len(stages) == len(STAGES)


def test_a_message_was_not_alone_if_something_else_arrived() -> None:
    assert stages_of(sorted([*SENDER, (600, READ)]), SEQUENCER, MESSAGE) is None
    assert stages_of(SENDER, sorted([*SEQUENCER, (150, READ)]), MESSAGE) is None


def test_a_message_that_shared_a_write_is_left_out() -> None:
    assert stages_of(SENDER[3:], SEQUENCER, MESSAGE) is None
    assert stages_of(SENDER, SEQUENCER[:2], MESSAGE) is None


def test_the_table_has_a_line_for_each_stage() -> None:
    lone, calls = lone_messages([Notes(SEQUENCER, []), Notes(SENDER, [MESSAGE]), Notes([], [MESSAGE])])
    assert (len(lone), calls) == (1, [40])
    lines = table(lone, calls, round_trip_us=0.3)
    assert [line.split("%  ")[1] for line in lines[:-2]] == list(STAGES)
    assert "3.0 raw round trips" in lines[-2]

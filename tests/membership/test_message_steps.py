"""The steps that every message needs: room, turns, and what consuming a message leads to."""

from priocast.core.message import OrderedBatch
from priocast.member import Member
from support.stacks import MILLISECOND, Neighbourhood, founded

WINDOW = 8


def _unread(**options: object) -> tuple[Neighbourhood, Member]:
    """A group in which b has a window of messages that its application has not taken."""
    group = founded("ab", window=WINDOW, **options)
    group.applications["b"].takes_messages = False
    group.broadcast("a", *map(str, range(2 * WINDOW)))
    group.run(5)
    return group, group.members["b"]


def test_consuming_says_whether_others_may_wait_for_what_follows() -> None:
    group, member = _unread()
    follows = []
    for _ in range(WINDOW):
        assert isinstance(member.head(group.now), OrderedBatch)
        follows.append(member.consume(1, group.now))
    assert follows == [False, True] * (WINDOW // 2), "a report is due after a quarter of the window"
    assert len(member.frames(group.now)) == 1, "the reports are in the frames for a"


def test_a_turn_ends_when_there_is_nothing_to_do() -> None:
    group = founded("ab")
    member = group.members["a"]
    assert not member.act(group.now)
    assert member.broadcast(b"x", 7) is not None
    assert member.act(group.now), "the sequencer's own packets are for the next step"
    member.turn(group.now)
    assert not member.act(group.now)


def test_a_message_without_room_is_not_accepted() -> None:
    group = founded("ab", queue_max=4)
    member = group.members["b"]
    accepted = [member.broadcast(b"x", 255) is not None for _ in range(6)]
    assert accepted == [True] * 4 + [False] * 2
    assert (member.room(255), member.backlog) == (0, 4)


def test_before_the_first_view_messages_wait_for_it() -> None:
    group = Neighbourhood("a", founders=2, queue_max=4)
    member = group.members["a"]
    assert [member.broadcast(b"x", 0) is not None for _ in range(5)] == [True] * 4 + [False]
    group.now += MILLISECOND
    assert not member.act(group.now)
    group.start("b")
    group.wait_payloads("ab", *"xxxx")

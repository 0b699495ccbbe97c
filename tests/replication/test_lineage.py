"""The past of a log: which logs continue each other, and what a log proves about the others."""

from priocast.replication.commands import LogTip
from priocast.replication.lineage import GENERATIONS_MAX, Lineage, majority_index

VOTERS = ("a", "b", "c")


def lineage(*generations: tuple[int, int]) -> Lineage:
    made = Lineage()
    for number, index in generations:
        made.begin(number, index, VOTERS, b"history")
    return made


def test_a_log_is_part_of_another_if_its_last_entry_is() -> None:
    whole = lineage((1, 0), (2, 10), (4, 20))
    for tip, index in (((1, 10), 30), ((2, 20), 30), ((4, 30), 30), ((1, 5), 30)):
        assert whole.contains(LogTip(*tip), index)
    for tip in ((1, 11), (2, 21), (4, 31), (3, 15), (5, 1), (0, 0)):
        assert not whole.contains(LogTip(*tip), 30), "entries that were dropped, or are to come"


def test_a_majority_has_what_half_of_the_others_have() -> None:
    assert majority_index((), {}) == 0
    assert majority_index(VOTERS, {"a": 7, "b": 5}) == 5
    assert majority_index(VOTERS, {"a": 7, "d": 9}) == 0, "d is no voter"
    assert majority_index(("a", "b", "c", "d"), {"a": 7, "b": 6, "c": 5}) == 5, "three of four"


def test_acknowledgements_only_grow_and_are_of_the_generation() -> None:
    found = lineage((2, 0))
    assert found.acknowledge("a", LogTip(2, 5)) and found.acknowledge("b", LogTip(2, 7))
    assert not found.acknowledge("a", LogTip(2, 4)) and not found.acknowledge("a", LogTip(1, 9))
    assert found.durable_index() == 5
    found.begin(3, 6, VOTERS, b"history")
    assert not found.acknowledge("a", LogTip(3, 6)), "its log ends before this generation"
    assert found.durable_index() == 0 and found.acknowledged["b"] == LogTip(2, 7)


def test_what_a_majority_had_must_be_in_a_log_that_replaces_this_one() -> None:
    own = lineage((1, 0))
    own.acknowledge("a", LogTip(1, 9))
    own.acknowledge("b", LogTip(1, 8))
    assert own.lost(lineage((1, 0), (2, 8)), 20) is None
    assert own.lost(lineage((1, 0), (2, 7)), 20) == LogTip(1, 8)
    assert own.lost(lineage((1, 0)), 7) == LogTip(1, 8)
    assert own.lost(lineage((5, 3)), 7) is None, "too long ago to tell"


def test_voters_change_one_by_one_when_the_change_before_is_durable() -> None:
    found = lineage((1, 0))
    found.acknowledge("d", LogTip(1, 1))
    assert "try again" in found.change_voter("d", True, "abcd", 2)
    for name in "ab":
        found.acknowledge(name, LogTip(1, 1))
    assert found.change_voter("e", True, "abcd", 2) == "e has no log in this group now"
    assert found.change_voter("d", True, "abcd", 2) == "" and list(found.voters) == [*"abcd"]
    assert "try again" in found.change_voter("c", False, "abcd", 3)
    for name in "abd":
        found.acknowledge(name, LogTip(1, 2))
    assert found.change_voter("c", False, "abcd", 3) == "" and list(found.voters) == [*"abd"]


def test_the_generations_that_are_remembered_are_limited() -> None:
    found = lineage(*((number, number) for number in range(1, GENERATIONS_MAX + 10)))
    assert len(found.generations) == GENERATIONS_MAX and found.generations[0] == LogTip(10, 10)

"""Quorums and cliques: what any two of them have in common, and which one is best."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from membership.builders import A, B, C, D
from priocast.core.identity import ProcessId
from priocast.membership.quorum import best_clique, is_quorum

PROCESSES = [ProcessId(name) for name in "abcdefg"]
views = st.integers(1, 7).map(lambda size: PROCESSES[:size])


def test_more_than_half_or_half_with_the_first() -> None:
    assert is_quorum([A, B, C], [B, C]) and not is_quorum([A, B, C], [A])
    assert is_quorum([A, B], [A]) and not is_quorum([A, B], [B])
    assert is_quorum([A, B, C, D], [A, D]) and not is_quorum([A, B, C, D], [B, C])


def test_another_incarnation_is_not_present() -> None:
    assert not is_quorum([A, B, C], [A, ProcessId("b", 2), ProcessId("c", 2)])


@given(views, st.data())
def test_any_two_quorums_have_a_member_in_common(members: list[ProcessId], data: st.DataObject) -> None:
    one = data.draw(st.sets(st.sampled_from(members)))
    other = data.draw(st.sets(st.sampled_from(members)))
    if is_quorum(members, one) and is_quorum(members, other):
        assert one & other


@given(views, st.data())
def test_at_most_one_of_two_sides_continues(members: list[ProcessId], data: st.DataObject) -> None:
    side = data.draw(st.sets(st.sampled_from(members)))
    sides = is_quorum(members, side), is_quorum(members, set(members) - side)
    assert sides in {(True, False), (False, True)}
    assert is_quorum(members, members)


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[ProcessId], set[frozenset[ProcessId]]]:
    """Processes, and the pairs of them that can talk to each other."""
    processes = PROCESSES[: draw(st.integers(1, 6))]
    pairs = [frozenset(pair) for pair in combinations(processes, 2)]
    return processes, draw(st.sets(st.sampled_from(pairs))) if pairs else set()


@given(networks())
def test_a_clique_is_one_and_nobody_could_be_added(
    network: tuple[list[ProcessId], set[frozenset[ProcessId]]],
) -> None:
    processes, links = network

    def linked(one: ProcessId, other: ProcessId) -> bool:
        return frozenset((one, other)) in links

    found = best_clique(processes, linked, lambda clique: (len(clique),))
    assert found == sorted(found) and found
    assert all(linked(one, other) for one, other in combinations(found, 2))
    for process in set(processes) - set(found):
        assert not all(linked(process, member) for member in found)


@given(st.integers(2, 6), st.data())
def test_the_larger_of_two_sides_of_a_partition_is_found(size: int, data: st.DataObject) -> None:
    processes = PROCESSES[:size]
    side = data.draw(st.sets(st.sampled_from(processes)))

    def linked(one: ProcessId, other: ProcessId) -> bool:
        return (one in side) == (other in side)

    found = best_clique(processes, linked, lambda clique: (len(clique),))
    assert len(found) == max(len(side), size - len(side))


def test_of_equals_the_senior_one_is_chosen() -> None:
    """A talks to B, B to C, and C not to A: A and B come first."""
    links = {frozenset((A, B)), frozenset((B, C))}
    found = best_clique([A, B, C], lambda one, other: frozenset((one, other)) in links, lambda _: (0,))
    assert found == [A, B]
    found = best_clique([C, B, A], lambda one, other: frozenset((one, other)) in links, lambda _: (0,))
    assert found == [C, B]

"""Reachability: the masks are what the processes said, and the best clique is that of a plain search."""

from collections.abc import Callable
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from membership.builders import A, B, C, D
from priocast.core.identity import ProcessId
from priocast.membership.options import MEMBERS_MAX
from priocast.membership.reachability import Reachability, best_clique

PROCESSES = [ProcessId(name) for name in "abcdefg"]
Said = dict[ProcessId, list[ProcessId]]


def of(me: ProcessId, said: Said) -> Reachability:
    """What a process knows that has met all of these, and heard them say whom they hear."""
    reachability = Reachability(me)
    for process in said:
        reachability.add(process)
    for process, hears in said.items():
        reachability.update(process, hears)
    return reachability


def linked_by(me: ProcessId, said: Said) -> Callable[[ProcessId, ProcessId], bool]:
    """The definition: each hears the other; this process hears all others."""
    everything = {**said, me: list(said)}
    return lambda one, other: other in everything[one] and one in everything[other]


def by_plain_search(
    processes: list[ProcessId],
    linked: Callable[[ProcessId, ProcessId], bool],
    value: Callable[[list[ProcessId]], tuple[int, ...]],
) -> list[ProcessId]:
    """From each process on, add the others in order; of the order of n to the power of four."""
    best: list[ProcessId] = []
    for seed in processes:
        clique = [seed]
        for process in processes:
            if process != seed and all(linked(process, other) for other in clique):
                clique.append(process)
        clique.sort(key=processes.index)
        if not best or value(clique) > value(best):
            best = clique
    return best


@st.composite
def hearsay(draw: st.DrawFn) -> tuple[ProcessId, Said]:
    """A process, and whom each of the others says that it hears."""
    me, *others = PROCESSES[: draw(st.integers(2, 7))]
    heard = st.lists(st.sampled_from(PROCESSES), unique=True)
    return me, {process: draw(heard) for process in others}


@given(hearsay(), st.permutations(PROCESSES))
def test_the_best_clique_is_that_of_a_plain_search(
    given_: tuple[ProcessId, Said], seniority: list[ProcessId]
) -> None:
    me, said = given_
    processes = [process for process in seniority if process == me or process in said]
    reachability = of(me, said)
    mine, some = reachability.bit(me), reachability.mask(processes[:3])

    def value(found: int) -> tuple[int, ...]:
        return found & mine, (found & some).bit_count(), found.bit_count()

    found = best_clique(processes, reachability, value)
    plain = by_plain_search(processes, linked_by(me, said), lambda each: value(reachability.mask(each)))
    assert found == plain


@given(hearsay(), st.data())
def test_links_follow_what_is_said_in_any_order(given_: tuple[ProcessId, Said], data: st.DataObject) -> None:
    """Processes are met, say something, say something else, are forgotten and are met again."""
    me, said = given_
    reachability = Reachability(me)
    met: Said = {}
    for process in data.draw(st.lists(st.sampled_from(list(said)), max_size=20)):
        if process not in met:
            reachability.add(process)
            met[process] = []
        elif data.draw(st.booleans()):
            hears = data.draw(st.lists(st.sampled_from(PROCESSES)))
            assert reachability.update(process, hears) == (set(hears) != set(met[process]))
            met[process] = hears
        else:
            reachability.remove(process)
            del met[process]
    linked = linked_by(me, met)
    for one, other in combinations([me, *met], 2):
        assert reachability.are_linked(one, other) == linked(one, other)
    for process, hears in met.items():
        for other in PROCESSES:
            if other != process:
                assert reachability.hears(process, other) == (other in hears)


def test_of_equals_the_senior_one_is_chosen() -> None:
    """A talks to B, B to C, and C not to A: A and B come first."""
    reachability = of(B, {A: [B], C: [B]})
    assert best_clique([A, B, C], reachability, lambda found: (found.bit_count(),)) == [A, B]
    assert best_clique([C, B, A], reachability, lambda found: (found.bit_count(),)) == [C, B]


def test_a_process_is_heard_by_others_before_it_is_met() -> None:
    reachability = of(A, {B: [A, C, D]})
    reachability.add(C)
    assert reachability.hears(B, C) and reachability.hears(B, D) and not reachability.are_linked(B, C)
    reachability.update(C, [A, B])
    assert best_clique([A, B, C], reachability, lambda found: (found.bit_count(),)) == [A, B, C]


class Counted:
    """A value that counts how often it is asked for."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, found: int) -> tuple[int, ...]:
        self.calls += 1
        return (found.bit_count(),)


def test_a_partition_of_the_largest_group_takes_a_few_steps() -> None:
    """What is counted does not depend on the machine: one search for each side, not for each process."""
    me, *others = [ProcessId(f"m{number:03}") for number in range(MEMBERS_MAX)]
    side, other_side = [me, *others[:150]], others[150:]
    said = {process: [*side] for process in side[1:]} | {process: [*other_side] for process in other_side}
    value = Counted()
    assert best_clique([me, *others], of(me, said), value) == side
    assert value.calls < 10

"""Quorums, and cliques of processes that can all talk to each other."""

from collections.abc import Callable, Collection, Sequence

from priocast.core.identity import ProcessId


def is_quorum(members: Sequence[ProcessId], present: Collection[ProcessId]) -> bool:
    """Whether those present may decide for all members: more than half, or half including the first member.

    Any two quorums have a member in common, and a group of two survives the failure of its second member.
    """
    count = sum(member in present for member in members)
    return 2 * count > len(members) or (2 * count == len(members) and members[0] in present)


def best_clique(
    processes: Sequence[ProcessId],
    linked: Callable[[ProcessId, ProcessId], bool],
    value: Callable[[list[ProcessId]], tuple[int, ...]],
) -> list[ProcessId]:
    """Processes that are all linked to each other: the clique of the highest value, or the first of several.

    `processes` come in order of seniority. Starting from each of them, the others are added in that order if
    they are linked to all members of the clique. That finds every relevant clique in a network that is
    partitioned in a few places, and takes polynomial time in any network.
    """
    best: list[ProcessId] = []
    for seed in processes:
        clique = [seed]
        for process in processes:
            if process != seed and all(linked(process, other) for other in clique):
                clique.append(process)
        clique.sort(key=processes.index)
        if len(clique) == len(processes):
            return clique
        if not best or value(clique) > value(best):
            best = clique
    return best

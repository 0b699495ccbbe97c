"""Who may speak for a view, and which processes should be the next one."""

from collections.abc import Callable, Collection, Sequence

from priocast.core.identity import ProcessId


def is_quorum(members: Sequence[ProcessId], present: Collection[ProcessId]) -> bool:
    """Whether those present may decide for all members: more than half, or half with the first member.

    Any two quorums have a member in common, and a group of two survives the loss of its second member.
    """
    count = sum(member in present for member in members)
    return 2 * count > len(members) or (2 * count == len(members) and members[0] in present)


def best_clique(
    processes: Sequence[ProcessId],
    linked: Callable[[ProcessId, ProcessId], bool],
    value: Callable[[list[ProcessId]], tuple[int, ...]],
) -> list[ProcessId]:
    """Processes that can all talk to each other: of those found, the ones of highest value, then the first.

    `processes` come in order of seniority. From each of them, the others are added in that order if they
    can talk to all there are; that finds every clique that matters in a network that is cut in a few
    places, in a time that does not explode in any other.
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

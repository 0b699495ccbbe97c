"""Who hears whom, as bit masks, among the processes that one process has met.

Every process has a bit. What a heartbeat says costs only as much as it changes, and whether many processes
are all linked to each other is one operation for each of them, however many there are.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

from priocast.core.identity import ProcessId


class Reachability:
    """The links of the processes that were met; this process itself hears all of them.

    A process may be heard by others before this one has met it: it is kept by name until then. `revision`
    grows with every change.
    """

    def __init__(self, me: ProcessId) -> None:
        self.revision = 0
        self._me = me
        self._bits = {me: 1}
        self._free: list[int] = []
        self._hears = {me: 0}
        self._heard_by = {1: 0}
        self._unmet: dict[ProcessId, frozenset[ProcessId]] = {}

    def add(self, process: ProcessId) -> None:
        """A process was met."""
        self.revision += 1
        bit = self._free.pop() if self._free else 1 << len(self._bits)
        self._bits[process] = bit
        self._hears[process] = 0
        self._hears[self._me] |= bit
        self._heard_by[bit] = self._bits[self._me]
        for other, unmet in self._unmet.items():
            if process in unmet:
                self._unmet[other] = unmet - {process}
                self._hears[other] |= bit
                self._heard_by[bit] |= self._bits[other]

    def remove(self, process: ProcessId) -> None:
        """A process is forgotten."""
        self.revision += 1
        self.update(process, ())
        bit = self._bits.pop(process)
        for other, hears in self._hears.items():
            if hears & bit and other != self._me:
                self._unmet[other] = self._unmet.get(other, frozenset()) | {process}
            self._hears[other] &= ~bit
        del self._hears[process], self._heard_by[bit]
        self._free.append(bit)

    def update(self, process: ProcessId, hears: Sequence[ProcessId]) -> bool:
        """A process that was met says whom it hears; return whether that is news."""
        found = list(map(self._bits.get, hears))
        unmet: frozenset[ProcessId] = frozenset()
        if None in found:
            unmet = frozenset(other for other, bit in zip(hears, found, strict=True) if bit is None)
        is_news = unmet != self._unmet.pop(process, frozenset())
        if unmet:
            self._unmet[process] = unmet
        mask = reduce(or_, filter(None, found), 0)
        changed = mask ^ self._hears[process]
        self._hears[process] = mask
        is_news |= changed != 0
        self.revision += is_news
        bit = self._bits[process]
        while changed:
            lowest = changed & -changed
            self._heard_by[lowest] ^= bit
            changed ^= lowest
        return is_news

    def hears(self, process: ProcessId, other: ProcessId) -> bool:
        """Whether a process that was met hears another one."""
        bit = self._bits.get(other)
        return other in self._unmet.get(process, ()) if bit is None else bool(self._hears[process] & bit)

    def bit(self, process: ProcessId) -> int:
        """The bit of a process in all masks."""
        return self._bits[process]

    def mask(self, processes: Iterable[ProcessId]) -> int:
        """The mask of different processes."""
        return sum(self._bits[process] for process in processes)

    def links(self, process: ProcessId) -> int:
        """The processes that hear this one and are heard by it, as a mask."""
        return self._hears[process] & self._heard_by[self._bits[process]]

    def reach(self, processes: Sequence[ProcessId]) -> list[int]:
        """The links of each of these processes, and itself, as masks."""
        bits, hears, heard_by = self._bits, self._hears, self._heard_by
        return [hears[process] & heard_by[bit] | bit for process in processes if (bit := bits[process])]

    def are_linked(self, one: ProcessId, other: ProcessId) -> bool:
        """Whether each of two processes that were met hears the other."""
        return bool(self.links(one) & self._bits[other])


def best_clique(
    processes: Sequence[ProcessId], reachability: Reachability, value: Callable[[int], tuple[int, ...]]
) -> list[ProcessId]:
    """Processes that are all linked to each other: the clique of the highest value, or the first of several.

    `processes` come in order of seniority. Starting from each of them, the others are added in that order if
    they are linked to all members of the clique. That finds every relevant clique in a network that is
    partitioned in a few places, and takes quadratic time in any network. Mostly it takes linear time:
    processes with the same links are in the same clique, and a process whose links would be worth less than
    the best clique, even if all of them were linked to each other, is no place to start from. `value` is that
    of a mask, and grows with every process that is added.
    """
    everybody = reachability.mask(processes)
    reach = [reached & everybody for reached in reachability.reach(processes)]
    if reach.count(everybody) == len(reach):
        return list(processes)
    bits = [reachability.bit(process) for process in processes]
    partial = [(bit, reached) for bit, reached in zip(bits, reach, strict=True) if reached != everybody]
    best, best_value = 0, value(0)
    for start in dict.fromkeys(reach):
        if value(start) <= best_value:
            continue
        clique = start
        for bit, reached in partial:
            if clique & bit:
                clique &= reached
        if value(clique) > best_value:
            best, best_value = clique, value(clique)
    return [process for process, bit in zip(processes, bits, strict=True) if best & bit]

"""The target view: the view that a process would propose now.

It is a pure function of a `GroupSituation`: asking for the target view changes nothing.
"""

from collections.abc import Callable, Sequence

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view import View, ViewId
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.membership.quorum import is_quorum
from priocast.membership.reachability import Reachability, best_clique

_Value = Callable[[int], tuple[int, ...]]


class Peer(msgspec.Struct, frozen=True):
    """Another process, as it described itself in its last heartbeat.

    The members of its view are known in a partitionable group, where it may come from another one.
    """

    process: ProcessId
    view: ViewId | None
    members: tuple[ProcessId, ...]
    leaving: bool


class GroupSituation(msgspec.Struct, frozen=True):
    """Everything that the target view of one process depends on.

    `peers` are the other processes that count as alive, sorted; those in `avoided` are left alone for now.
    `reachability` is who of them hears whom.
    `evicted` are members that the next view shall exclude. `may_found` is whether this process may found the
    group.
    """

    me: ProcessId
    options: MembershipOptions
    view: View | None
    peers: tuple[Peer, ...]
    reachability: Reachability
    avoided: frozenset[ProcessId] = frozenset()
    leaving: bool = False
    evicted: frozenset[ProcessId] = frozenset()
    may_found: bool = True


class TargetView(msgspec.Struct, frozen=True):
    """The voters, the first of which proposes, and the members of the view.

    A process that leaves or is evicted votes, but is not a member.
    """

    voters: tuple[ProcessId, ...]
    members: tuple[ProcessId, ...]


class TargetViewPlanner:
    """Computes the target view of one situation."""

    def __init__(self, situation: GroupSituation) -> None:
        self._situation = situation
        self._me = situation.me
        self._peers = {peer.process: peer for peer in situation.peers}
        avoided = situation.avoided
        present = [process for process in self._peers if process not in avoided] if avoided else self._peers
        self._present = [self._me, *present]
        self._my_bit = situation.reachability.bit(self._me)
        leaving = [peer.process for peer in situation.peers if peer.leaving]
        self._going = situation.evicted.union(leaving, [self._me] if situation.leaving else [])

    def target(self) -> TargetView | None:
        """The target view; None if this process can be in no view now."""
        view = self._situation.view
        if view is None:
            return self._founding()
        if self._situation.options.primary:
            return self._continuing(view)
        return self._continuing_or_merging(view)

    def _founding(self) -> TargetView | None:
        """Found the group; if somebody is in a view already, wait to be admitted."""
        situation, options = self._situation, self._situation.options
        linked = situation.reachability.links(self._me).bit_count() + 1
        if situation.leaving or not situation.may_found or linked < options.founders:
            return None
        if any(map(self._view_of, self._present)):
            return None
        candidates = sorted(process for process in self._present if process not in self._going)
        clique = self._clique(candidates, lambda found: (found & self._my_bit, found.bit_count()))
        if len(clique) < options.founders:
            return None
        chosen = clique[: options.founders]
        return self._target_of(chosen, None) if self._me in chosen else None

    def _continuing(self, view: View) -> TargetView | None:
        """The majority of the view, and the processes that join it."""
        present = frozenset(self._present)
        survivors = [member for member in view.members if member in present]
        surviving = frozenset(survivors)
        joiners = [
            process for process in self._present if process not in surviving and not self._view_of(process)
        ]
        of_survivors = self._situation.reachability.mask(survivors)
        of_first = self._situation.reachability.mask(survivors[:1]) if survivors[0] == view.members[0] else 0

        def value(found: int) -> tuple[int, ...]:
            """A majority that includes this process; of two halves, the one with the first member."""
            count = (found & of_survivors).bit_count()
            decides = found & of_first if 2 * count == len(view.members) else 0
            return found & self._my_bit, count, decides, found.bit_count()

        clique = self._clique(survivors + sorted(joiners), value)
        if not is_quorum(view.members, frozenset(clique)) or self._me not in clique:
            return None
        return self._target_of(clique, view)

    def _continuing_or_merging(self, view: View) -> TargetView | None:
        """Every reachable process: the largest view's members first, processes without a view last."""
        present = [process for process in self._present if not self._is_bound_elsewhere(process)]
        reachable, members = frozenset(present), frozenset(view.members)
        survivors = [member for member in view.members if member in reachable]
        parts: dict[ViewId | None, list[ProcessId]] = {view.id: survivors}
        for process in present:
            if process not in members:
                parts.setdefault(self._view_of(process), []).append(process)
        joiners = parts.pop(None, [])
        by_size = sorted(parts.items(), key=lambda part: (-len(part[1]), part[0]))
        of_survivors = self._situation.reachability.mask(survivors)
        clique = self._clique(
            [process for _, part in by_size for process in part] + joiners,
            lambda found: (found & self._my_bit, (found & of_survivors).bit_count(), found.bit_count()),
        )
        return self._target_of(clique, view)

    def _target_of(self, voters: list[ProcessId], view: View | None) -> TargetView | None:
        """Exclude who leaves or is evicted, unless nobody who has the state of the view would remain."""
        members = tuple(process for process in voters if process not in self._going)
        if members and view is not None and not any(member in view.members for member in members):
            members = tuple(voters)
        return TargetView(tuple(voters), members) if members else None

    def _view_of(self, process: ProcessId) -> ViewId | None:
        return None if process == self._me else self._peers[process].view

    def _is_bound_elsewhere(self, process: ProcessId) -> bool:
        """Whether the process is in another view, with members that are not linked to this process."""
        peer = self._peers.get(process)
        if peer is None or self._me in peer.members:
            return False
        reachability = self._situation.reachability
        return any(
            other not in self._peers or not reachability.are_linked(self._me, other)
            for other in peer.members
            if other != process and reachability.hears(process, other)
        )

    def _clique(self, processes: Sequence[ProcessId], value: _Value) -> list[ProcessId]:
        return best_clique(processes[:MEMBERS_MAX], self._situation.reachability, value)

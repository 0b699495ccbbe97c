"""A seeded model of a group in which members crash, leave, join, and are partitioned and merged.

It is not a protocol. A global procedure moves batches from senders to the coordinator of a view and from
there to its members, and ends views so that every guarantee holds; the real recorder records it. Members
receive and consume at their own pace, so a view ends at a different position for each of them. If the
coordinator orders by reference (`sequencer-bb`), batches go to all members directly.
"""

import random
from heapq import heappop, heappush

from pipeline.group_state import Component, OrderedItem, Process, StateItem, ViewItem, key_of
from pipeline.sample_runs import LEVELS, TICK_NS, Ordered, SampleRun, Submit, manifest_of
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch, Scope
from priocast.core.starvation import Strict
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.departure import Departed
from priocast.membership.packets import Ordering
from priocast.trace.recorder import Recorder
from priocast.trace.schema import TraceRow

_BLOCK = bytes(8)


class GroupModel:
    """A group; every public method is something that happens to it."""

    def __init__(
        self,
        names: str = "abcd",
        policy: str = "primary",
        delivery: str = "agreed",
        seed: int = 1,
        batch_max: int = 1,
        safe_share: float = 0.0,
        selective_share: float = 0.0,
        repeated_share: float = 0.0,
        clock: str = "virtual",
        order: str = "sequencer-ub",
    ) -> None:
        self.rng = random.Random(seed)
        self.primary = policy == "primary"
        self.batch_max, self.safe_share, self.selective_share = batch_max, safe_share, selective_share
        self.repeated_share = repeated_share
        self.repetitions: set[tuple[ProcessId, int, int]] = set()
        self.ordering = Ordering(order, True, str(Strict()))
        self.all_safe = delivery == "safe"
        self.manifest = manifest_of(
            "living", list(names), seed, policy=policy, delivery=delivery, clock=clock, order=order
        )
        self.rows: list[TraceRow] = []
        self.now = self.arrivals = 0
        self.incarnations: dict[str, int] = {}
        founders = [self._start(name) for name in names]
        self.components: list[Component] = []
        self._install(founders, 1, 0, ViewReason(founded=True))

    # What happens without faults

    def work(self, ticks: int = 6) -> "GroupModel":
        """All members broadcast, the coordinators order, members receive and consume at random."""
        for _ in range(ticks):
            self._tick()
            for component in self.components:
                for member in component.members:
                    self._broadcast(member)
                self._order(component, 3)
                for member in component.members:
                    self._receive(component, member, self.rng.randint(member.got, len(component.log)))
                    self._consume(member, self.rng.random() < 0.7)
        return self

    def settle(self) -> "GroupModel":
        """Everything that can be ordered is ordered, and is consumed everywhere."""
        while any(component.queue and component.orderer for component in self.components):
            self._tick()
            for component in self.components:
                self._order(component, 10)
        for component in self.components:
            for member in component.members:
                self._receive(component, member, len(component.log))
                self._restore_state(component, member, at_once=True)
        for component in self.components:
            for member in component.members:
                self._consume(member)
        return self

    def done(self) -> SampleRun:
        """The run, with everything delivered."""
        self.settle()
        assert all(len(part.members) == len(part.view.members) for part in self.components), "all are there"
        return SampleRun(self.manifest, self.rows).changed(lambda rows: rows)

    # Faults and changes

    def crash(self, *names: str) -> "GroupModel":
        """These members crash; the others have not noticed yet."""
        for component in self.components:
            component.members = [member for member in component.members if member.me.name not in names]
        return self

    def notice(self) -> "GroupModel":
        """New views without the members that crashed."""
        for component in list(self.components):
            gone = [process for process in component.everybody if process not in component.members]
            if gone:
                self._change([[*component.members]], component, ViewReason(failed=_names(gone)))
        return self

    def change_order(
        self, order: str = "sequencer-ub", prioritised: bool = False, starvation: str = "none"
    ) -> "GroupModel":
        """Use another protocol or policy from here on; what waited in a plain view stays first."""
        if not self.ordering.prioritised:
            for member in (member for component in self.components for member in component.members):
                member.pending = {key: batch.in_line() for key, batch in member.pending.items()}
        self.ordering = Ordering(order, prioritised, starvation)
        for component in list(self.components):
            self._change([[*component.members]], component, ViewReason(order=order))
        return self

    def leave(self, *names: str) -> "GroupModel":
        """These leave: all get what the view has, they consume it, and record that they left."""
        for component in list(self.components):
            leaving = [member for member in component.members if member.me.name in names]
            staying = [member for member in component.members if member not in leaving]
            if leaving:
                for member in component.members:
                    self._receive(component, member, len(component.log))
                for member in leaving:
                    self._consume(member)
                self._change([staying], component, ViewReason(left=_names(leaving)))
                for member in leaving:
                    self._stop(member, True, ViewReason(left=_names(leaving)))
        return self

    def evict(self, *names: str) -> "GroupModel":
        """The others continue without these, which stop when they find out."""
        for component in list(self.components):
            evicted = [member for member in component.members if member.me.name in names]
            staying = [member for member in component.members if member not in evicted]
            if evicted:
                self._change([staying], component, ViewReason(failed=_names(evicted)))
                for member in evicted:
                    self._stop(member, False, ViewReason(failed=_names(evicted)))
        return self

    def join(self, *names: str, after: int = 0) -> "GroupModel":
        """New processes join the first component, and receive its state `after` this many packets."""
        component = self.components[0]
        joining = [self._start(name, after) for name in names]
        self._change([[*component.members]], component, ViewReason(joined=_names(joining)), joining)
        return self

    def split(self, *names: str) -> "GroupModel":
        """A partition: these and the rest continue concurrently, each side with what it has."""
        assert not self.primary
        for component in list(self.components):
            apart = [member for member in component.members if member.me.name in names]
            rest = [member for member in component.members if member not in apart]
            self._change([part for part in (rest, apart) if part], component, ViewReason(failed=tuple(names)))
        return self

    def merge(self) -> "GroupModel":
        """All components come together in one view."""
        self._tick()
        parts, self.components = self.components, []
        cuts = [self._cuts(part, [part.members])[0] for part in parts]
        for part, cut in zip(parts, cuts, strict=True):
            self._close(part, part.members, cut, cut)
        position = max(part.end_of(cut) for part, cut in zip(parts, cuts, strict=True))
        members = [member for part in parts for member in part.members]
        self._install(
            members, max(part.view.number for part in parts) + 1, position, ViewReason(merged=_names(members))
        )
        return self

    # Implementation

    def _tick(self) -> None:
        self.now += TICK_NS

    def _start(self, name: str, after: int | None = None) -> Process:
        self.incarnations[name] = self.incarnations.get(name, 0) + 1
        me = ProcessId(name, self.incarnations[name])
        return Process(me, Recorder(me, self.rows.append), state_after=after)

    def _install(self, members: list[Process], number: int, position: int, reason: ViewReason) -> None:
        view = View(number, tuple(member.me for member in members))
        component = Component(view, self.ordering, tuple(members), members, position)
        self.components.append(component)
        for member in members:
            member.component, member.got, member.read = component, 0, 0
            member.recorder.installed(view)
            member.stream.append(ViewItem(component, reason))
            self._restore_state(component, member)
        for member in members:
            for batch in sorted(member.pending.values(), key=lambda batch: (batch.level, batch.first)):
                self._submit(member, batch)

    def _change(
        self,
        classes: list[list[Process]],
        old: Component,
        reason: ViewReason,
        joining: list[Process] | None = None,
    ) -> None:
        """End a view for the members that continue from it, each class separately, and install new ones."""
        self._tick()
        self.components.remove(old)
        cuts = self._cuts(old, classes)
        dropped = [process.read for process in self._dropped(old, classes)]
        for members, cut in zip(classes, cuts, strict=True):
            self._close(old, members, cut, max([*cuts, *dropped]))
            self._install([*members, *(joining or [])], old.view.number + 1, old.end_of(cut), reason)

    def _dropped(self, old: Component, classes: list[list[Process]]) -> list[Process]:
        going = [member for members in classes for member in members]
        return [process for process in old.everybody if process not in going]

    def _cuts(self, old: Component, classes: list[list[Process]]) -> list[int]:
        """How many packets each class keeps: what any of it has; a single class also what was read."""
        dropped = [process.read for process in self._dropped(old, classes)] if len(classes) == 1 else []
        return [max([*(member.got for member in members), *dropped]) for members in classes]

    def _close(self, old: Component, members: list[Process], cut: int, known: int) -> None:
        """All get what is kept; what only others know (up to `known`) must not be submitted again."""
        ordered = {key_of(batch) for packet in old.log[:known] for batch in packet.batches}
        for member in members:
            self._receive(old, member, cut)
            self._restore_state(old, member, at_once=True)
            member.pending = {key: batch for key, batch in member.pending.items() if key not in ordered}

    def _stop(self, member: Process, voluntary: bool, reason: ViewReason) -> None:
        member.stream.clear()
        member.recorder.stopped(Departed(voluntary, reason), self.now)

    def _restore_state(self, component: Component, member: Process, at_once: bool = False) -> None:
        if member.state_after is not None and (at_once or member.got >= member.state_after):
            member.state_after = None
            member.stream.append(StateItem(component, component.end_of(member.got)))

    def _broadcast(self, member: Process) -> None:
        level = self.rng.choice(LEVELS)
        count = self.rng.randint(1, self.batch_max)
        first = member.numbers.get(level, 0)
        member.numbers[level] = first + count
        to: tuple[str, ...] = ()
        if self.rng.random() < self.selective_share:
            to = tuple(sorted(self.rng.sample(sorted(self.incarnations), self.rng.randint(1, 2))))
        safe = self.all_safe or self.rng.random() < self.safe_share
        client = "k" if count == 1 and self.rng.random() < self.repeated_share else ""
        batch = Batch(member.me, level, first, count, _BLOCK, scope=Scope(safe, to, client, self.now))
        if client and self.rng.random() < 0.5:
            self.repetitions.add(key_of(batch))
        member.pending[key_of(batch)] = batch
        member.recorder.broadcast(batch, self.now, 0)
        self._submit(member, batch)

    def _submit(self, member: Process, batch: Batch) -> None:
        assert member.component is not None
        component = member.component
        packet = Submit((batch,))
        to_all = component.orders_by_reference
        member.recorder.sent(packet, None if to_all else component.view.coordinator, self.now, 0)
        orderer = component.orderer
        for receiver in component.members if to_all else [orderer] if orderer else []:
            receiver.recorder.received(packet, member.me, self.now, len(component.queue))
        if orderer:
            self.arrivals += 1
            key = component.policy.sort_key(batch.urgency, self.now)
            heappush(component.queue, (key, self.arrivals, batch))

    def _order(self, component: Component, count_max: int) -> None:
        orderer = component.orderer
        if orderer and component.queue:
            count = min(count_max, len(component.queue))
            batches = tuple(heappop(component.queue)[-1] for _ in range(count))
            packet = Ordered(component.end_of(len(component.log)), batches)
            component.log.append(packet)
            orderer.recorder.sent(component.as_sent(packet), None, self.now, len(component.queue))
            self._receive(component, orderer, len(component.log))

    def _receive(self, component: Component, member: Process, until: int) -> None:
        for index in range(member.got, until):
            packet = component.log[index]
            member.recorder.received(component.as_sent(packet), component.view.coordinator, self.now, 0)
            position = packet.position
            for batch in packet.batches:
                member.pending.pop(key_of(batch), None)
                is_skipped = not batch.scope.includes(member.me) or key_of(batch) in self.repetitions
                if member.state_after is None and not is_skipped:
                    member.stream.append(
                        OrderedItem(component, index, OrderedBatch(component.view.id, position, batch))
                    )
                position += batch.count
            member.got = index + 1
            self._restore_state(component, member)

    def _consume(self, member: Process, everything: bool = True) -> None:
        while member.stream and (everything or self.rng.random() < 0.7):
            item = member.stream[0]
            if isinstance(item, OrderedItem):
                if not item.may_be_read(member):
                    return
                count = self.rng.randint(1, item.ordered_batch.batch.count - item.ordered_batch.taken)
                member.recorder.delivered(item.ordered_batch, count, self.now, 0)
                item.ordered_batch.taken += count
                if item.component is member.component:
                    member.read = item.index + 1
                if item.ordered_batch.taken < item.ordered_batch.batch.count:
                    continue
            elif isinstance(item, ViewItem):
                component = item.component
                member.recorder.view(
                    component.view, component.ordering, component.position, item.reason, self.now
                )
            else:
                member.recorder.restored(item.component.view, item.position, 100, self.now)
            member.stream.popleft()


def _names(processes: list[Process]) -> tuple[str, ...]:
    return tuple(process.me.name for process in processes)

"""Groups that live: a seeded model in which members crash, leave, join, part and meet again.

A model that sees everything moves batches from senders to the coordinator of a view, from there to its
members, and closes views so that all guarantees hold; the real recorder records it. Members consume at their
own pace. Where the coordinator only names what it orders (`sequencer-bb`), batches go to all at once.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

from pipeline.sample_runs import LEVELS, TICK_NS, Ordered, SampleRun, Submit, manifest_of, naming
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch, Scope
from priocast.core.protocol import Packet
from priocast.core.starvation import FirstInFirstOut, Starvation, Strict, parse_starvation
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.departure import Departed
from priocast.membership.packets import Ordering
from priocast.trace.recorder import Recorder
from priocast.trace.schema import Row

_BLOCK = bytes(8)


@dataclass(eq=False)
class Component:
    """A view at work: what its coordinator has ordered, and what still waits there."""

    view: View
    ordering: Ordering
    everybody: tuple["Process", ...]
    members: list["Process"]
    position: int
    log: list[Ordered] = field(default_factory=list)
    queue: list[tuple[int, int, Batch]] = field(default_factory=list)

    @property
    def orderer(self) -> "Process | None":
        return next((member for member in self.members if member.me == self.view.coordinator), None)

    @property
    def policy(self) -> Starvation:
        ordering = self.ordering
        return parse_starvation(ordering.starvation) if ordering.prioritised else FirstInFirstOut()

    @property
    def names_only(self) -> bool:
        return self.ordering.order == "sequencer-bb"

    def as_sent(self, packet: Ordered) -> Packet:
        return naming(packet) if self.names_only else packet

    def end_of(self, count: int) -> int:
        """The position after the first packets."""
        return self.position + sum(batch.count for packet in self.log[:count] for batch in packet.batches)


@dataclass(frozen=True)
class Told:
    component: Component
    reason: ViewReason


@dataclass(frozen=True)
class State:
    component: Component
    position: int


@dataclass(frozen=True)
class Placed:
    component: Component
    place: int
    ordered_batch: OrderedBatch

    def may_be_read(self, reader: "Process") -> bool:
        """A safe message is for reading when all have it, or when its view is over for the reader."""
        if not self.ordered_batch.batch.scope.safe or reader.component is not self.component:
            return True
        return all(process.got > self.place for process in self.component.everybody)


@dataclass(eq=False)
class Process:
    """One life of a member; `got` counts the packets of its view, `read` those that its application has.

    `state_after` is how many packets of its view a joiner waits for before it takes over the state.
    """

    me: ProcessId
    recorder: Recorder
    component: Component | None = None
    got: int = 0
    read: int = 0
    state_after: int | None = None
    stream: deque[Told | State | Placed] = field(default_factory=deque)
    numbers: dict[int, int] = field(default_factory=dict)
    pending: dict[tuple[ProcessId, int, int], Batch] = field(default_factory=dict)


class LivingGroup:
    """A group as it lives; every method is something that happens to it."""

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
        self.dice = random.Random(seed)
        self.primary = policy == "primary"
        self.batch_max, self.safe_share, self.selective_share = batch_max, safe_share, selective_share
        self.repeated_share = repeated_share
        self.repetitions: set[tuple[ProcessId, int, int]] = set()
        self.ordering = Ordering(order, True, str(Strict()))
        self.all_safe = delivery == "safe"
        self.manifest = manifest_of(
            "living", list(names), seed, policy=policy, delivery=delivery, clock=clock, order=order
        )
        self.rows: list[Row] = []
        self.now = self.arrivals = 0
        self.lives: dict[str, int] = {}
        founders = [self._born(name) for name in names]
        self.components: list[Component] = []
        self._install(founders, 1, 0, ViewReason(founded=True))

    # What happens by itself

    def work(self, ticks: int = 6) -> "LivingGroup":
        """Everybody broadcasts, the coordinators order, members receive and consume as they please."""
        for _ in range(ticks):
            self._tick()
            for component in self.components:
                for member in component.members:
                    self._broadcast(member)
                self._order(component, 3)
                for member in component.members:
                    self._receive(component, member, self.dice.randint(member.got, len(component.log)))
                    self._consume(member, self.dice.random() < 0.7)
        return self

    def settle(self) -> "LivingGroup":
        """Everything that can be ordered is, and is consumed everywhere."""
        while any(component.queue and component.orderer for component in self.components):
            self._tick()
            for component in self.components:
                self._order(component, 10)
        for component in self.components:
            for member in component.members:
                self._receive(component, member, len(component.log))
                self._take_over_state(component, member, at_once=True)
        for component in self.components:
            for member in component.members:
                self._consume(member)
        return self

    def done(self) -> SampleRun:
        """The run, come to rest."""
        self.settle()
        assert all(len(part.members) == len(part.view.members) for part in self.components), "all are there"
        return SampleRun(self.manifest, self.rows).changed(lambda rows: rows)

    # What is done to it

    def crash(self, *names: str) -> "LivingGroup":
        """These are gone, and nobody knows yet."""
        for component in self.components:
            component.members = [member for member in component.members if member.me.name not in names]
        return self

    def notice(self) -> "LivingGroup":
        """Views without those that are gone."""
        for component in list(self.components):
            gone = [process for process in component.everybody if process not in component.members]
            if gone:
                self._change([[*component.members]], component, ViewReason(failed=_names(gone)))
        return self

    def change_order(
        self, order: str = "sequencer-ub", prioritised: bool = False, starvation: str = "none"
    ) -> "LivingGroup":
        """From here on by another class, or policy; what waited in line stays in line."""
        if not self.ordering.prioritised:
            for member in (member for component in self.components for member in component.members):
                member.pending = {key: batch.in_line() for key, batch in member.pending.items()}
        self.ordering = Ordering(order, prioritised, starvation)
        for component in list(self.components):
            self._change([[*component.members]], component, ViewReason(order="another"))
        return self

    def leave(self, *names: str) -> "LivingGroup":
        """These leave in order: all get what the view has, they consume it, and say that they left."""
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
                    self._stop(member, Departed(True, ViewReason(left=_names(leaving))))
        return self

    def evict(self, *names: str) -> "LivingGroup":
        """The others go on without these, who stop when they find out."""
        for component in list(self.components):
            evicted = [member for member in component.members if member.me.name in names]
            staying = [member for member in component.members if member not in evicted]
            if evicted:
                self._change([staying], component, ViewReason(failed=_names(evicted)))
                for member in evicted:
                    self._stop(member, Departed(False, ViewReason(failed=_names(evicted))))
        return self

    def join(self, *names: str, after: int = 0) -> "LivingGroup":
        """New processes come to the first component, and take over its state `after` so many packets."""
        component = self.components[0]
        joining = tuple(self._born(name, after) for name in names)
        self._change([[*component.members]], component, ViewReason(joined=_names(joining)), joining)
        return self

    def split(self, *names: str) -> "LivingGroup":
        """These and the rest go on side by side, each with what they have."""
        assert not self.primary
        for component in list(self.components):
            apart = [member for member in component.members if member.me.name in names]
            rest = [member for member in component.members if member not in apart]
            self._change([part for part in (rest, apart) if part], component, ViewReason())
        return self

    def merge(self) -> "LivingGroup":
        """All components come together in one view."""
        self._tick()
        parts, self.components = self.components, []
        cuts = [self._cuts(part, [part.members])[0] for part in parts]
        for part, cut in zip(parts, cuts, strict=True):
            self._close(part, part.members, cut, cut)
        position = max(part.end_of(cut) for part, cut in zip(parts, cuts, strict=True))
        members = [member for part in parts for member in part.members]
        self._install(members, max(part.view.number for part in parts) + 1, position, ViewReason())
        return self

    # How it is done

    def _tick(self) -> None:
        self.now += TICK_NS

    def _born(self, name: str, after: int | None = None) -> Process:
        self.lives[name] = self.lives.get(name, 0) + 1
        me = ProcessId(name, self.lives[name])
        return Process(me, Recorder(me, self.rows.append), state_after=after)

    def _install(self, members: list[Process], number: int, position: int, reason: ViewReason) -> None:
        view = View(number, tuple(member.me for member in members))
        component = Component(view, self.ordering, tuple(members), members, position)
        self.components.append(component)
        for member in members:
            member.component, member.got, member.read = component, 0, 0
            member.recorder.installed(view)
            member.stream.append(Told(component, reason))
            self._take_over_state(component, member)
        for member in members:
            for batch in sorted(member.pending.values(), key=lambda batch: (batch.level, batch.first)):
                self._submit(member, batch)

    def _change(
        self, classes: list[list[Process]], old: Component, reason: ViewReason, new: tuple[Process, ...] = ()
    ) -> None:
        """Close a view for those who go on from it, each class by itself, and give each a new one."""
        self._tick()
        self.components.remove(old)
        cuts = self._cuts(old, classes)
        fallen = [process.read for process in self._fallen(old, classes)]
        for members, cut in zip(classes, cuts, strict=True):
            self._close(old, members, cut, max([*cuts, *fallen]))
            self._install([*members, *new], old.view.number + 1, old.end_of(cut), reason)

    def _fallen(self, old: Component, classes: list[list[Process]]) -> list[Process]:
        going = [member for members in classes for member in members]
        return [process for process in old.everybody if process not in going]

    def _cuts(self, old: Component, classes: list[list[Process]]) -> list[int]:
        """How much of a view each class keeps: what one of it has; the only one keeps all that was read."""
        fallen = [process.read for process in self._fallen(old, classes)] if len(classes) == 1 else []
        return [max([*(member.got for member in members), *fallen]) for members in classes]

    def _close(self, old: Component, members: list[Process], cut: int, known: int) -> None:
        """All get what is kept; what only others know of (up to `known`) must not be submitted again."""
        placed = {key_of(batch) for packet in old.log[:known] for batch in packet.batches}
        for member in members:
            self._receive(old, member, cut)
            self._take_over_state(old, member, at_once=True)
            member.pending = {key: batch for key, batch in member.pending.items() if key not in placed}

    def _stop(self, member: Process, departed: Departed) -> None:
        member.stream.clear()
        member.recorder.stopped(departed, self.now)

    def _take_over_state(self, component: Component, member: Process, at_once: bool = False) -> None:
        if member.state_after is not None and (at_once or member.got >= member.state_after):
            member.state_after = None
            member.stream.append(State(component, component.end_of(member.got)))

    def _broadcast(self, member: Process) -> None:
        level = self.dice.choice(LEVELS)
        count = self.dice.randint(1, self.batch_max)
        first = member.numbers.get(level, 0)
        member.numbers[level] = first + count
        to: tuple[str, ...] = ()
        if self.dice.random() < self.selective_share:
            to = tuple(sorted(self.dice.sample(sorted(self.lives), self.dice.randint(1, 2))))
        safe = self.all_safe or self.dice.random() < self.safe_share
        client = "k" if count == 1 and self.dice.random() < self.repeated_share else ""
        batch = Batch(member.me, level, first, count, _BLOCK, scope=Scope(safe, to, client, self.now))
        if client and self.dice.random() < 0.5:
            self.repetitions.add(key_of(batch))
        member.pending[key_of(batch)] = batch
        member.recorder.broadcast(batch, self.now, 0)
        self._submit(member, batch)

    def _submit(self, member: Process, batch: Batch) -> None:
        assert member.component is not None
        component = member.component
        packet = Submit((batch,))
        to_all = component.names_only
        member.recorder.sent(packet, None if to_all else component.view.coordinator, self.now, 0)
        orderer = component.orderer
        for receiver in component.members if to_all else [orderer] if orderer else []:
            receiver.recorder.received(packet, member.me, self.now, len(component.queue))
        if orderer:
            self.arrivals += 1
            rank = component.policy.rank(batch.urgency, self.now)
            heappush(component.queue, (rank, self.arrivals, batch))

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
        for place in range(member.got, until):
            packet = component.log[place]
            member.recorder.received(component.as_sent(packet), component.view.coordinator, self.now, 0)
            position = packet.position
            for batch in packet.batches:
                member.pending.pop(key_of(batch), None)
                is_passed_over = not batch.scope.includes(member.me) or key_of(batch) in self.repetitions
                if member.state_after is None and not is_passed_over:
                    member.stream.append(
                        Placed(component, place, OrderedBatch(component.view.id, position, batch))
                    )
                position += batch.count
            member.got = place + 1
            self._take_over_state(component, member)

    def _consume(self, member: Process, everything: bool = True) -> None:
        while member.stream and (everything or self.dice.random() < 0.7):
            item = member.stream[0]
            if isinstance(item, Placed):
                if not item.may_be_read(member):
                    return
                count = self.dice.randint(1, item.ordered_batch.batch.count - item.ordered_batch.taken)
                member.recorder.delivered(item.ordered_batch, count, self.now, 0)
                item.ordered_batch.taken += count
                if item.component is member.component:
                    member.read = item.place + 1
                if item.ordered_batch.taken < item.ordered_batch.batch.count:
                    continue
            elif isinstance(item, Told):
                component = item.component
                view, ordering = component.view, component.ordering
                member.recorder.view(view, ordering, component.position, item.reason, self.now)
            else:
                member.recorder.restored(item.component.view, item.position, 100, self.now)
            member.stream.popleft()


def _names(processes: list[Process] | tuple[Process, ...]) -> tuple[str, ...]:
    return tuple(process.me.name for process in processes)


def key_of(batch: Batch) -> tuple[ProcessId, int, int]:
    return batch.sender, batch.level, batch.first

"""Generates the faults of a scenario: several of them, in sequence or overlapping.

Their durations are around the failure timeout: a pause or a cut that is a little shorter goes unnoticed, one
that is a little longer does not, and a process that returns in the middle of a view change tests the most.
"""

from collections.abc import Callable

import msgspec

from priocast.core.starvation import Ageing, PeriodicRelease, Strict, parse_starvation
from priocast.membership.options import MembershipOptions
from priocast.protocols import all_orders, find_protocol, takes_policy
from priocast.simulation.faults import (
    COORDINATOR,
    LOSS_PERCENT_MAX,
    MICROSECOND,
    Crash,
    CutKind,
    FaultKind,
    FaultOptions,
    Leave,
    NetworkCut,
    Pause,
    PlannedOrderChange,
    Stall,
)
from priocast.simulation.seeded_random import SeededRandom

_CALM_PERCENT = 25
_LAYERED_PERCENT = 20
_SAME_ORDER_PERCENT = 40
#: Protocols that no seed draws, so that the runs of all seeds stay what they are: `--order` chooses them.
NOT_DRAWN = ("adaptive", "all-ack")
#: The kinds of fault that are no incidents at one time.
_WITHOUT_INCIDENTS: tuple[FaultKind, ...] = ("none", "network")


def generate_faults(
    random: SeededRandom,
    names: tuple[str, ...],
    membership: MembershipOptions,
    started_us: int,
    only: FaultKind | None = None,
) -> FaultOptions:
    """Generate the faults between the processes of these names; with `only`, faults of this kind."""
    generated = _FaultGenerator(random, names, membership, only)
    failure_us = generated.failure_us
    phase_us = started_us + failure_us * random.randint(1, 8)
    is_calm = random.chance(_CALM_PERCENT)
    if not is_calm if only is None else only not in _WITHOUT_INCIDENTS:
        for _ in range(random.choice((1, 1, 2, 2, 3, 4))):
            generated.add_one(random.randint(failure_us // 4, phase_us))
    faults = FaultOptions(
        loss_percent=random.log_uniform(1, LOSS_PERCENT_MAX) if random.chance(40) else 0,
        duplication_percent=random.log_uniform(1, 30) if random.chance(30) else 0,
        reordering_percent=random.log_uniform(1, 50) if random.chance(30) else 0,
        reordering_us=random.log_uniform(50, 100_000),
        pauses=tuple(generated.pauses),
        stalls=tuple(generated.stalls),
        cuts=tuple(generated.cuts),
        crashes=tuple(generated.crashes),
        leaves=tuple(generated.leaves),
        order_changes=tuple(generated.order_changes),
        reconnects=random.chance(30),
        healed_at_us=max(generated.healed_at_us, phase_us),
    )
    return faults if only is None else _with_network_of(random, faults, only)


def _with_network_of(random: SeededRandom, faults: FaultOptions, only: FaultKind) -> FaultOptions:
    """The faults with a network that loses frames if that is the kind of fault, and otherwise none."""
    if only == "network":
        loss = faults.loss_percent or random.log_uniform(1, LOSS_PERCENT_MAX)
        return msgspec.structs.replace(faults, loss_percent=loss)
    return msgspec.structs.replace(faults, loss_percent=0, duplication_percent=0, reordering_percent=0)


def generate_order(random: SeededRandom, membership: MembershipOptions) -> str:
    """Choose a protocol for a group: a basic one, or a layer over a basic one."""
    plain, layered = all_orders(layered_over=()), all_orders()
    orders = layered if random.chance(_LAYERED_PERCENT) else plain
    drawn = [order for order in orders if order.rpartition("/")[2] not in NOT_DRAWN]
    return random.choice(
        [order for order in drawn if membership.primary or find_protocol(order).PARTITIONABLE]
    )


def generate_new_orders(
    random: SeededRandom, faults: FaultOptions, order: str, membership: MembershipOptions
) -> FaultOptions:
    """Choose the protocol after each order change: the present one, or any other."""
    changes = []
    for change in faults.order_changes:
        chosen = order if random.chance(_SAME_ORDER_PERCENT) else generate_order(random, membership)
        policy = parse_starvation(change.starvation)
        acting = policy if takes_policy(find_protocol(chosen), policy) else Strict()
        changes.append(msgspec.structs.replace(change, order=chosen, starvation=str(acting)))
    return msgspec.structs.replace(faults, order_changes=tuple(changes))


class _FaultGenerator:
    """The faults that were generated so far."""

    def __init__(
        self,
        random: SeededRandom,
        names: tuple[str, ...],
        membership: MembershipOptions,
        only: FaultKind | None,
    ) -> None:
        self._random = random
        self._names = names
        self._only = only
        self.failure_us = membership.failure_ns // MICROSECOND
        self._slow_us = membership.slow_ns // MICROSECOND
        self._state = membership.state
        self.pauses: list[Pause] = []
        self.stalls: list[Stall] = []
        self.cuts: list[NetworkCut] = []
        self.crashes: list[Crash] = []
        self.leaves: list[Leave] = []
        self.order_changes: list[PlannedOrderChange] = []
        self.healed_at_us = 0

    def add_one(self, at_us: int) -> None:
        """Generate one more fault that begins at this time."""
        kinds: list[tuple[FaultKind, Callable[[int], None], int]] = [
            ("crash", self._add_crash, 20),
            ("crash", self._add_crash_of_donor, 10 if self._state else 0),
            ("crash", self._add_crash_in_change, 16),
            ("cut", self._add_cut, 30),
            ("pause", self._add_pause, 14),
            ("stall", self._add_stall, 8),
            ("leave", self._add_leave, 8),
            ("order-change", self._add_order_change, 8),
        ]
        wanted = [each for each in kinds if self._only in (None, each[0])]
        (add,) = self._random.choices([add for _, add, _ in wanted], [weight for *_, weight in wanted])
        add(at_us)

    def _some_member(self) -> str:
        return COORDINATOR if self._random.chance(35) else self._random.choice(self._names)

    def _heals_by(self, time_us: int) -> None:
        self.healed_at_us = max(self.healed_at_us, time_us)

    def _back_after_us(self) -> int | None:
        if self._random.chance(30):
            return None
        return self._random.log_uniform(500, 4 * self.failure_us)

    def _add_crash(self, at_us: int) -> None:
        self._add_crash_of(self._some_member(), at_us)

    def _add_crash_of(self, member: str, at_us: int) -> None:
        back_after_us = self._back_after_us()
        self.crashes.append(Crash(member=member, at_us=at_us, back_after_us=back_after_us))
        self._heals_by(at_us + (back_after_us or 0))

    def _add_crash_of_donor(self, at_us: int) -> None:
        """A process comes back, and the donor that would send it the state crashes."""
        back_after_us = self._random.log_uniform(self.failure_us // 10, 2 * self.failure_us)
        joiner = self._random.choice(self._names)
        self.crashes.append(Crash(member=joiner, at_us=at_us, back_after_us=back_after_us))
        others = len(self._names) - 1
        self._add_armed_crash(
            COORDINATOR, at_us + back_after_us, self._random.randint(2 * others + 1, 4 * others + 1)
        )

    def _add_crash_in_change(self, at_us: int) -> None:
        """Something causes a view change, and a process crashes during it."""
        causes = (self._add_crash, self._add_crash, self._add_cut, self._add_leave)
        cause = self._random.choice(causes) if self._only is None else self._add_crash
        cause(at_us)
        member = COORDINATOR if self._random.chance(30) else ""
        self._add_armed_crash(member, at_us, self._random.log_uniform(1, 4 * len(self._names)))

    def _add_armed_crash(self, member: str, at_us: int, change_packets: int) -> None:
        back_after_us = self._back_after_us()
        self.crashes.append(
            Crash(member=member, at_us=at_us, change_packets=change_packets, back_after_us=back_after_us)
        )
        self._heals_by(at_us + 5 * self.failure_us + (back_after_us or 0))

    def _add_cut(self, at_us: int) -> None:
        size = len(self._names)
        if size < 2:
            return
        kinds: list[CutKind] = ["halves", "isolated", "one-way"]
        kinds += ["bridge", "ring"] if size >= 4 else ["bridge"] if size == 3 else []
        kind = self._random.choice(kinds)
        names = self._random.sample(self._names, size)
        match kind:
            case "halves":
                names = names[: self._random.randint(1, size - 1)]
            case "isolated":
                names = [COORDINATOR] if self._random.chance(60) else names[:1]
            case "one-way":
                names = names[:2]
        cut = NetworkCut(
            kind=kind,
            members=tuple(names),
            from_us=at_us,
            for_us=self._random.log_uniform(self.failure_us // 4, 5 * self.failure_us),
        )
        self.cuts.append(cut)
        self._heals_by(cut.until_us)

    def _add_pause(self, at_us: int) -> None:
        """A little shorter than the timeout, a little longer, or of any length."""
        for_us = self._random.choice(
            (
                self.failure_us * self._random.randint(70, 99) // 100,
                self.failure_us * self._random.randint(100, 150) // 100,
                self._random.log_uniform(1_000, 4 * self.failure_us),
            )
        )
        pause = Pause(member=self._some_member(), from_us=at_us, for_us=for_us)
        self.pauses.append(pause)
        self._heals_by(pause.until_us)

    def _add_stall(self, at_us: int) -> None:
        for_us = self._slow_us * self._random.randint(80, 300) // 100
        stall = Stall(member=self._some_member(), from_us=at_us, for_us=min(for_us, 10 * self.failure_us))
        self.stalls.append(stall)
        self._heals_by(stall.until_us)

    def _add_leave(self, at_us: int) -> None:
        back_after_us = self._back_after_us()
        self.leaves.append(Leave(member=self._some_member(), at_us=at_us, back_after_us=back_after_us))
        self._heals_by(at_us + (back_after_us or 0))

    def _add_order_change(self, at_us: int) -> None:
        step = self._random.log_uniform(50, 50_000) * MICROSECOND
        change = PlannedOrderChange(
            member=self._some_member(),
            at_us=at_us,
            prioritised=self._random.chance(50),
            starvation=str(self._random.choice(("none", Ageing(step), PeriodicRelease(step)))),
        )
        self.order_changes.append(change)
        self._heals_by(at_us)

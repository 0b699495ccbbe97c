"""Runs of the qualities of service for the pipeline's tests, and damages that break one promise each."""

from collections.abc import Callable
from typing import NamedTuple

from pipeline.sample_runs import SampleRun
from priocast.core.guarantees import (
    ACCESSIBILITY,
    AT_LEAST,
    BEST_EFFORT,
    DELIVERY,
    NON_TRIVIALITY,
    SERVICE_CAUSAL_ORDER,
    SERVICE_FIFO_ORDER,
    SERVICE_TOTAL_ORDER,
    TIGHTNESS,
    UNANIMITY,
)
from priocast.core.quality import (
    ATOMIC,
    CAUSAL,
    RELIABLE,
    TIGHT,
    Quality,
    at_least,
    at_least_to,
    best_effort,
    delta,
)
from priocast.trace.schema import DELIVERED, FINISHED, LATE, SENT, Manifest, ServiceRow, TraceRow
from services.lan import MS, Lan

ServiceDamage = Callable[[list[TraceRow]], list[TraceRow]]


def as_run(lan: Lan, name: str) -> SampleRun:
    """The run of a simulated LAN, as the pipeline reads it."""
    manifest = Manifest(
        run=name,
        group="services",
        order="sequencer-ub",
        prioritised=True,
        starvation="none",
        orders="coordinator",
        priorities_act="sequencing",
        members=[each.name for each in lan.ids],
        policy="primary",
        delivery="agreed",
        clock="virtual",
        options={"services.precision_us": lan.options.precision_ns // 1_000},
    )
    return SampleRun(manifest, list(lan.rows))


def calm(quality: Quality) -> Lan:
    """Two members send three messages each, and everybody delivers all; the fourth answers the first."""
    lan = Lan(4)
    lan.run(50)
    for index in range(3):
        for sender in (0, 1):
            at = (60 + 40 * index + 10 * sender) * MS
            lan.at(at, lambda sender=sender: lan.send(sender, quality, units=2))  # type: ignore[misc]
    lan.at(400 * MS, lambda: lan.send(3, quality))
    lan.run(1500)
    return lan


def _find(rows: list[TraceRow], event: str, **wanted: object) -> int:
    """The index of the first row of the table `services` with these values."""
    return next(
        index
        for index, row in enumerate(rows)
        if isinstance(row, ServiceRow)
        and row.event == event
        and all(getattr(row, name) == value for name, value in wanted.items())
    )


def _changed(rows: list[TraceRow], index: int, **changes: object) -> list[TraceRow]:
    rows[index] = rows[index]._replace(**changes)  # type: ignore[arg-type]
    return rows


def invent(rows: list[TraceRow]) -> list[TraceRow]:
    """A member delivers a message that nobody sent."""
    return _changed(rows, _find(rows, DELIVERED, member="c", number=2), number=77)


def change_quality(rows: list[TraceRow]) -> list[TraceRow]:
    """A member delivers a message with another priority."""
    return _changed(rows, _find(rows, DELIVERED, member="c", number=2), priority=9)


def exchange_units(rows: list[TraceRow]) -> list[TraceRow]:
    """A member delivers the units of a message in the wrong order."""
    first = _find(rows, DELIVERED, member="c", number=2, sender="a", unit=0)
    second = _find(rows, DELIVERED, member="c", number=2, sender="a", unit=1)
    return _changed(_changed(rows, first, unit=1), second, unit=0)


def readdress(rows: list[TraceRow]) -> list[TraceRow]:
    """A member delivers a message that is not for it."""
    return _changed(rows, _find(rows, SENT, number=2), recipients=("a#1", "b#1", "d#1"))


def deliver_rejected(rows: list[TraceRow]) -> list[TraceRow]:
    """A member delivers a message that it rejected."""
    return _changed(rows, _find(rows, FINISHED, number=2), rejected=("c",), reasons=("no room",))


def forget_receipt(rows: list[TraceRow]) -> list[TraceRow]:
    """A sender gets no receipt."""
    del rows[_find(rows, FINISHED, number=3)]
    return rows


def drop(rows: list[TraceRow]) -> list[TraceRow]:
    """A member does not deliver the last message of a sender."""
    for _ in range(2):
        del rows[_find(rows, DELIVERED, member="c", sender="a", number=3)]
    return rows


def drop_unanswered(rows: list[TraceRow]) -> list[TraceRow]:
    """The same, and the receipt does not say that it has it."""
    return _changed(drop(rows), _find(rows, FINISHED, number=3, sender="a"), answered=("b",))


def delay(rows: list[TraceRow]) -> list[TraceRow]:
    """A member delivers the last message much later."""
    index = _find(rows, DELIVERED, member="c", sender="d")
    return _changed(rows, index, time_ns=rows[index].time_ns + 50 * MS)


def delay_and_say_so(rows: list[TraceRow]) -> list[TraceRow]:
    """The same, and the member says that it was late, which breaks no promise."""
    return _changed(delay(rows), _find(rows, DELIVERED, member="c", sender="d"), reasons=(LATE,))


def reverse(rows: list[TraceRow]) -> list[TraceRow]:
    """A member delivers two messages of a sender in the wrong order."""
    return _postpone(rows, {"sender": "a", "number": 2}, {"sender": "a", "number": 3})


def interchange(rows: list[TraceRow]) -> list[TraceRow]:
    """A member delivers messages of two senders, which do not depend on each other, in another order."""
    return _postpone(rows, {"sender": "a", "number": 3}, {"sender": "b", "number": 3})


def answer_first(rows: list[TraceRow]) -> list[TraceRow]:
    """A member delivers the answer before the message that it answers."""
    return _postpone(rows, {"sender": "b", "number": 3}, {"sender": "d", "number": 1})


def _postpone(rows: list[TraceRow], one: dict[str, object], until: dict[str, object]) -> list[TraceRow]:
    """A member delivers one message after another one."""
    for unit in range(2):
        row = rows.pop(_find(rows, DELIVERED, member="c", unit=unit, **one))
        rows.insert(_find(rows, DELIVERED, member="c", unit=0, **until) + 1 + unit, row)
    return rows


class DamagedService(NamedTuple):
    """A damage of a run of a quality, and the promise that it breaks."""

    quality: Quality
    damage: ServiceDamage
    guarantee: str


DAMAGED = [
    DamagedService(RELIABLE, invent, NON_TRIVIALITY),
    DamagedService(RELIABLE, change_quality, NON_TRIVIALITY),
    DamagedService(TIGHT, exchange_units, NON_TRIVIALITY),
    DamagedService(RELIABLE, readdress, ACCESSIBILITY),
    DamagedService(ATOMIC, deliver_rejected, ACCESSIBILITY),
    DamagedService(best_effort(2), forget_receipt, DELIVERY),
    DamagedService(at_least(3), drop, DELIVERY),
    DamagedService(delta(120), delay, TIGHTNESS),
    DamagedService(CAUSAL, drop, UNANIMITY),
    DamagedService(at_least_to("b", "c"), drop_unanswered, AT_LEAST),
    DamagedService(best_effort(4), drop_unanswered, BEST_EFFORT),
    DamagedService(ATOMIC, interchange, SERVICE_TOTAL_ORDER),
    DamagedService(CAUSAL, answer_first, SERVICE_CAUSAL_ORDER),
    DamagedService(best_effort(2), reverse, SERVICE_FIFO_ORDER),
]

"""Px11 to Px13: in which order the messages of a quality are delivered."""

from collections import defaultdict
from itertools import combinations

from priocast.core.guarantees import SERVICE_CAUSAL_ORDER, SERVICE_FIFO_ORDER, SERVICE_TOTAL_ORDER
from priocast.simulation.checkers.rows import process_of
from priocast.simulation.checkers.service_checker import ServiceChecker
from priocast.simulation.checkers.service_history import OrderLane, ServiceKey, service_name
from priocast.trace.schema import FINISHED, SENT

Past = dict[OrderLane, int]
"""The last message of each lane that precedes something; all earlier ones of the lane do, too."""


class ServiceTotalOrder(ServiceChecker):
    """Px11: recipients deliver the same messages, unit by unit, in the same order."""

    GUARANTEE = SERVICE_TOTAL_ORDER

    def finish(self, now: int) -> None:
        delivered: dict[str, dict[str, dict[tuple[ServiceKey, int], None]]] = defaultdict(dict)
        for process in self._history.orderly:
            for row in self._history.delivered.get(process, []):
                if (message := self._judged(row)) is not None:
                    units = delivered[message.lane[0]].setdefault(process, {})
                    units[message.key, row.unit] = None
        for of_order in delivered.values():
            for one, other in combinations(of_order, 2):
                mine = [unit for unit in of_order[one] if unit in of_order[other]]
                theirs = [unit for unit in of_order[other] if unit in of_order[one]]
                differing = [pair for pair in zip(mine, theirs, strict=True) if pair[0] != pair[1]]
                if differing:
                    (first, _), (second, _) = differing[0]
                    text = (
                        f"{one} delivers {service_name(first)} where {other} delivers {service_name(second)}"
                    )
                    self._broken(text, now, first, second, members=[one, other])


class ServiceCausalOrder(ServiceChecker):
    """Px12: no message is delivered after one that it may have caused.

    What a process has delivered, and what it has sent in the same lane, precedes what it sends next. The rows
    are read in the order in which they were recorded, and each message gets the past of its sender. Messages
    of another order neither precede nor follow it.
    """

    GUARANTEE = SERVICE_CAUSAL_ORDER

    def finish(self, now: int) -> None:
        known: dict[tuple[str, str], Past] = defaultdict(dict)
        followed: dict[tuple[str, str], Past] = defaultdict(dict)
        past: dict[ServiceKey, Past] = {}
        last_sent: Past = {}
        for row in self._history.rows:
            message, process = self._judged(row), process_of(row)
            if message is None or row.event == FINISHED or row.unit > 0:
                continue
            number, here = message.key[2], (process, message.lane[0])
            if row.event == SENT:
                past[message.key] = dict(known[here])
                _include(past[message.key], {message.lane: last_sent.get(message.lane, 0)})
                last_sent[message.lane] = number
            elif message.key in past:
                if number <= followed[here].get(message.lane, 0) and process in self._history.orderly:
                    text = f"{process} delivers {service_name(message.key)} after a message that it precedes"
                    self._broken(text, row.time_ns, message.key, members=[process])
                _include(followed[here], past[message.key])
                _include(known[here], past[message.key])
                _include(known[here], {message.lane: number})


class ServiceFifoOrder(ServiceChecker):
    """Px13: the messages of one sender are delivered in the order of sending; tight ones by priority."""

    GUARANTEE = SERVICE_FIFO_ORDER

    def finish(self, now: int) -> None:
        for process in self._history.orderly:
            last: dict[OrderLane, ServiceKey] = {}
            for row in self._history.delivered.get(process, []):
                message = self._judged(row)
                if message is None or row.unit > 0:
                    continue
                later = last.setdefault(message.lane, message.key)
                if message.key[2] < later[2]:
                    text = f"{process} delivers {service_name(later)} before {service_name(message.key)}"
                    self._broken(text, row.time_ns, later, message.key, members=[process])
                last[message.lane] = max(later, message.key, key=lambda key: key[2])


def _include(past: Past, other: Past) -> None:
    for lane, number in other.items():
        past[lane] = max(past.get(lane, 0), number)

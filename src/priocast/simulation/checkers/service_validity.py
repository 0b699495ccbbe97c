"""Px4 to Px7: what is delivered was sent, to whom, whether what is sent is delivered, and when."""

from collections import Counter
from collections.abc import Collection

from priocast.core.guarantees import ACCESSIBILITY, DELIVERY, NON_TRIVIALITY, TIGHTNESS
from priocast.core.quality import QualityKind
from priocast.simulation.checkers.checker import ReportViolation
from priocast.simulation.checkers.rows import name_of
from priocast.simulation.checkers.service_checker import ServiceChecker
from priocast.simulation.checkers.service_history import (
    ServiceHistory,
    ServiceKey,
    service_key,
    service_name,
)

_MILLISECOND = 1_000_000


class NonTriviality(ServiceChecker):
    """Px4: what is delivered was sent, with this quality and priority; its units come in their order."""

    GUARANTEE = NON_TRIVIALITY

    def finish(self, now: int) -> None:
        for process, rows in self._history.delivered.items():
            taken: Counter[ServiceKey] = Counter()
            for row in rows:
                key = service_key(row)
                message = self._history.sent.get(key)
                if message is None:
                    found = f"{process} delivers {service_name(key)}, which was not sent"
                elif (row.quality, row.priority) != (str(message.quality), message.priority):
                    found = f"{process} delivers {service_name(key)} as {row.quality}:{row.priority}"
                elif row.unit != taken[key] or row.unit >= message.units:
                    found = f"{process} delivers unit {row.unit} where unit {taken[key]} is next"
                else:
                    taken[key] += 1
                    continue
                if message is None or message.quality.kind in self._kinds:
                    self._broken(found, row.time_ns, key, members=[process])


class Accessibility(ServiceChecker):
    """Px5: a message is delivered once, by a recipient that did not reject it."""

    GUARANTEE = ACCESSIBILITY

    def finish(self, now: int) -> None:
        for process, rows in self._history.delivered.items():
            seen: set[tuple[ServiceKey, int]] = set()
            for row in rows:
                message = self._judged(row)
                if message is None:
                    continue
                key, receipt = message.key, self._history.receipts.get(message.key)
                found = ""
                if (key, row.unit) in seen:
                    found = "again"
                elif process not in message.recipients:
                    found = "which is for others"
                elif receipt is not None and name_of(process) in receipt.rejected:
                    found = "which it rejected"
                seen.add((key, row.unit))
                if found:
                    text = f"{process} delivers {service_name(key)}, {found}"
                    self._broken(text, row.time_ns, key, members=[process])


class DeliveryOfSent(ServiceChecker):
    """Px6: what a correct sender sends gets a receipt, and who answered that it has it delivers it."""

    GUARANTEE = DELIVERY

    def finish(self, now: int) -> None:
        history = self._history
        for message in self._messages():
            if message.sender not in history.correct:
                continue
            receipt = history.receipts.get(message.key)
            if receipt is None:
                self._broken(f"{message.sender} gets no receipt", now, message.key, members=[message.sender])
            elif receipt.accepted:
                having = history.times.get(message.key, {})
                lacking = [
                    each
                    for each in history.accessible(message)
                    if name_of(each) in receipt.answered and each not in having
                ]
                if lacking:
                    text = f"{', '.join(lacking)} answered and did not deliver"
                    self._broken(text, now, message.key, members=lacking)


class Tightness(ServiceChecker):
    """Px7: all recipients deliver at the same time, up to the precision of the clocks, after Δ + δ.

    A recipient that was late, and said so, is not judged: that is a timing failure.
    """

    GUARANTEE = TIGHTNESS

    def __init__(
        self,
        report: ReportViolation,
        history: ServiceHistory,
        precision_ns: int,
        kinds: Collection[QualityKind] | None = None,
    ) -> None:
        super().__init__(report, history, kinds)
        self._precision_ns = precision_ns

    def finish(self, now: int) -> None:
        for message in self._messages():
            times = [
                at
                for process, at in self._history.times.get(message.key, {}).items()
                if (message.key, process) not in self._history.late
            ]
            if not times:
                continue
            spread, took = max(times) - min(times), max(times) - message.time_ns
            within_ms = message.quality.within_ms
            if spread > self._precision_ns:
                self._broken(f"delivered within {spread} ns of each other", max(times), message.key)
            elif within_ms is not None and took > int(within_ms * _MILLISECOND) + 2 * self._precision_ns:
                self._broken(f"delivered after {took} ns", max(times), message.key)

"""Px8 to Px10: who delivers a message if anybody does."""

from priocast.core.guarantees import AT_LEAST, BEST_EFFORT, UNANIMITY
from priocast.core.quality import QualityKind
from priocast.simulation.checkers.rows import name_of
from priocast.simulation.checkers.service_checker import ServiceChecker
from priocast.simulation.checkers.service_history import SentService


class Unanimity(ServiceChecker):
    """Px8: what one correct recipient delivers, all correct recipients deliver."""

    GUARANTEE = UNANIMITY

    def finish(self, now: int) -> None:
        for message in self._messages():
            due = self._history.accessible(message)
            having = self._history.times.get(message.key, {})
            lacking = [each for each in due if each not in having]
            if lacking and len(lacking) < len(due):
                self._broken(f"not delivered by {', '.join(lacking)}", now, message.key, members=lacking)


class AtLeast(ServiceChecker):
    """Px9: what a correct recipient delivers, n recipients deliver, or all that the quality names.

    Recipients that failed may have been among the n. Of `at_least(n)`, the sender is not one.
    """

    GUARANTEE = AT_LEAST

    def finish(self, now: int) -> None:
        history = self._history
        for message in self._messages():
            if not self._is_owed(message):
                continue
            names, count = message.quality.names, message.quality.count
            due = [each for each in history.accessible(message) if not names or name_of(each) in names]
            if message.quality.kind is QualityKind.AT_LEAST and count is not None:
                due = [each for each in due if each != message.sender]
            others = [
                each
                for each in message.recipients
                if each not in history.accessible(message) and each != message.sender
            ]
            having = [each for each in history.correct if each in history.times.get(message.key, {})]
            needed = len(due) if count is None else min(count - len(others), len(due))
            if having and sum(each in having for each in due) < needed:
                text = f"delivered by {', '.join(having)} only, {needed} must"
                self._broken(text, now, message.key, members=having)

    def _is_owed(self, message: SentService) -> bool:
        return True


class BestEffort(AtLeast):
    """Px10: the same, if the sender does not fail."""

    GUARANTEE = BEST_EFFORT

    def _is_owed(self, message: SentService) -> bool:
        return message.sender in self._history.correct

"""A replica whose answers wait for disks, and which begins again from what is on them.

Every member records what changes its state and syncs it, one sync for as much as has come. It reports in the
order how far its disk is. An answer is given when a majority of the *voters* has everything on disk that the
answer depends on. Voters are the members that founded the group for the first time.

Members that found a group together, for the first time or after all have stopped, report first what they
found on their disks, and begin with the best of it (`founding.py`). Who lacks something gets the state of
that member. Commands are applied from the position on at which all have what they begin with.
"""

from collections import deque
from collections.abc import Callable

from priocast.core.priority import HIGHEST
from priocast.core.view import View
from priocast.replication.commands import LogReport, Refill, Stored, encode_envelope
from priocast.replication.founding import agreed_report, why_not_agreed
from priocast.replication.replicated_state import ReplicatedState
from priocast.replication.state_log import StateLog

_PART_BYTES = 512 * 1024

Send = Callable[[bytes, int, tuple[str, ...] | None], None]
Answering = Callable[[], None]


class Durability:
    """One member's part in it: what it reports, and the answers that wait."""

    def __init__(self, name: str, state: ReplicatedState, state_log: StateLog, send: Send) -> None:
        self._name = name
        self._state = state
        self._log = state_log
        self._send = send
        self._parts: dict[int, bytes] = {}
        self._stored: dict[str, int] = {}
        self._answers: deque[tuple[int, Answering]] = deque()
        self._own = self._report()

    def _report(self) -> LogReport:
        state = self._state
        return LogReport(self._name, state.generation, state.index, state.voters, self._log.is_damaged)

    # Founding

    def before_view(self, is_founding: bool) -> None:
        """A view comes; if this member founds the group, nothing is applied before all have agreed."""
        if is_founding:
            self._state.reports = {}
            self._own = self._report()

    def on_view(self, view: View) -> None:
        """A view began: what is missing of the agreement is asked for anew."""
        present = {member.name for member in view.members}
        self._stored = {name: index for name, index in self._stored.items() if name in present}
        if self._state.awaits_state:
            return
        if self._state.reports is None:
            self._announce()
            return
        self._parts.clear()
        self._state.reports = {name: each for name, each in self._state.reports.items() if name in present}
        if self._name not in self._state.reports:
            self._send(encode_envelope(self._own), HIGHEST, None)
        self._resolve(view)

    def on_restored(self) -> None:
        """A state was received, or the others have not agreed yet on one."""
        self._stored.clear()
        self._answers.clear()
        if self._state.reports is None:
            self._announce()
        else:
            self._own = self._report()
            self._send(encode_envelope(self._own), HIGHEST, None)

    def on_disk_message(self, message: LogReport | Refill | Stored) -> None:
        """A member says something of its disk."""
        match message:
            case LogReport():
                self._on_report(message)
            case Refill():
                self._on_refill(message)
            case Stored():
                self._on_stored(message)

    def _on_report(self, report: LogReport) -> None:
        """A member reports what it found on its disk."""
        if self._state.reports is not None and self._state.view is not None:
            self._state.reports[report.member] = report
            self._resolve(self._state.view)

    def _resolve(self, view: View) -> None:
        assert self._state.reports is not None
        best = agreed_report(self._state.reports, view)
        if best is None:
            return
        if all(_same(self._state.reports[member.name], best) for member in view.members):
            self._begin(best)
        elif best.member == self._name:
            data = self._state.save_agreed()
            parts = [data[start : start + _PART_BYTES] for start in range(0, len(data), _PART_BYTES)]
            for number, part in enumerate(parts):
                self._send(encode_envelope(Refill(view.number, number, len(parts), part)), HIGHEST, None)

    def _on_refill(self, refill: Refill) -> None:
        """A part of the state that all begin with."""
        state = self._state
        if state.reports is None or state.view is None or refill.view != state.view.number:
            return
        best = agreed_report(state.reports, state.view)
        self._parts[refill.part] = refill.data
        if best is None or len(self._parts) < refill.parts:
            return
        if not _same(self._own, best):
            state.load(b"".join(self._parts[number] for number in range(refill.parts)))
        self._begin(best)

    def _begin(self, best: LogReport) -> None:
        view = self._state.view
        assert view is not None
        self._parts.clear()
        self._stored.clear()
        voters = best.voters or tuple(sorted(member.name for member in view.members))
        self._state.begin_generation(best.generation + 1, voters)

    def why_not_current(self) -> str:
        """What the members that found the group wait for; empty if they do not."""
        if self._state.reports is None or self._state.view is None:
            return ""
        return why_not_agreed(self._state.reports, self._state.view)

    # Answers

    def defer(self, answer: Answering) -> None:
        """Give an answer when everything that was applied so far is durable."""
        self._answers.append((self._state.index, answer))
        self._give_answers()

    async def sync(self) -> None:
        """Sync what was recorded, again and again; ends with an error if the disk fails."""
        while True:
            await self._log.sync(self._state)
            if self._state.reports is None:
                self._announce()

    def _announce(self) -> None:
        stored = Stored(self._name, self._state.generation, min(self._log.durable, self._state.index))
        self._send(encode_envelope(stored), HIGHEST, None)

    def _on_stored(self, stored: Stored) -> None:
        """A member's disk has reached an index. One that was not known may not know this one either."""
        if stored.generation != self._state.generation or self._state.reports is not None:
            return
        is_new = stored.member not in self._stored and stored.member != self._name
        self._stored[stored.member] = max(stored.index, self._stored.get(stored.member, 0))
        if is_new:
            self._announce()
        self._give_answers()

    def _give_answers(self) -> None:
        voters = self._state.voters
        if not voters:
            return
        stored = sorted((self._stored.get(name, 0) for name in voters), reverse=True)
        durable = stored[len(voters) // 2]
        while self._answers and self._answers[0][0] <= durable:
            self._answers.popleft()[1]()


def _same(report: LogReport, best: LogReport) -> bool:
    return not report.is_damaged and (report.generation, report.index) == (best.generation, best.index)

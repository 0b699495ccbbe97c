"""A replica whose answers wait for disks, and which begins again from what is on them.

Every member records what changes its state and syncs it, one sync for as much as has come. It reports in the
order how far its disk is. An answer is given when a majority of the *voters* has everything on disk that the
answer depends on. Voters are the members that founded the group for the first time.

Members that found a group together, for the first time or after all have stopped, report first what they
found on their disks, and begin with the best of it (`founding.py`). Then they promise, on their disks, to
take part in no other generation of the same number. Who lacks something gets it from the member that is best.
Commands are applied from the position on at which all have promised and have what they begin with.
"""

import logging
from collections import deque
from collections.abc import Callable

from priocast.core.priority import HIGHEST
from priocast.core.view import View
from priocast.replication.commands import DiskMessage, LogReport, Promised, Refill, Stored, encode_envelope
from priocast.replication.founding import agreed_report, next_generation, why_not_agreed
from priocast.replication.lineage import majority_index
from priocast.replication.log_transfer import base_of_report
from priocast.replication.replicated_state import ReplicatedState
from priocast.replication.state_log import StateLog

log = logging.getLogger("priocast.replica")

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
        self._parts_count = 0
        self._promised: set[str] = set()
        self._has_promised = False
        self._stored: dict[str, int] = {}
        self._answers: deque[tuple[int, Answering]] = deque()
        self._own = self._report()
        self._was_in_group = False

    def _report(self) -> LogReport:
        lineage, index = self._state.lineage, self._state.index
        return LogReport(
            self._name,
            lineage.generation,
            index,
            lineage.voters,
            self._log.is_damaged,
            self._log.promised,
            lineage.history or self._log.salt,
            lineage.acknowledged,
        )

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
        self._forget_agreement()
        self._state.reports = {name: each for name, each in self._state.reports.items() if name in present}
        if self._name not in self._state.reports:
            self._send(encode_envelope(self._own), HIGHEST, None)
        self._resolve(view)

    def _forget_agreement(self) -> None:
        self._parts.clear()
        self._promised.clear()
        self._parts_count = 0
        self._has_promised = False

    def on_restored(self) -> None:
        """A state was received, or the others have not agreed yet on one."""
        self._stored.clear()
        self._answers.clear()
        if self._state.reports is None:
            self._check_own_log()
            self._announce()
        else:
            self._own = self._report()
            self._send(encode_envelope(self._own), HIGHEST, None)

    def _check_own_log(self) -> None:
        """Say it if the others know that this member's disk had more than was found on it."""
        known = self._state.lineage.acknowledged.get(self._name)
        if not self._was_in_group and known is not None and self._own.tip < known:
            log.error(
                "the log of %s ended before entry %d of generation %d, and the group knows that it had entry "
                "%d of generation %d: was it lost, or restored from a backup? It has the others' entries now",
                self._name,
                self._own.index,
                self._own.generation,
                known.index - 1,
                known.generation,
                extra={"member": self._name},
            )
        self._was_in_group = True

    def on_disk_message(self, message: DiskMessage) -> None:
        """A member says something of its disk."""
        match message:
            case LogReport():
                self._on_report(message)
            case Promised():
                self._on_promised(message)
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
        """If all have reported, promise to begin, and give the others what they lack."""
        reports = self._state.reports
        assert reports is not None
        best = agreed_report(reports, view)
        if best is None or self._has_promised:
            return
        self._has_promised = True
        generation = next_generation(reports, view)
        self._log.promise(generation)
        self._send(encode_envelope(Promised(self._name, view.number, generation)), HIGHEST, None)
        lacking = [report for report in reports.values() if not _same(report, best)]
        if lacking and best.member == self._name:
            data = self._state.save_agreed([base_of_report(report) for report in lacking])
            parts = [data[start : start + _PART_BYTES] for start in range(0, len(data), _PART_BYTES)]
            for number, part in enumerate(parts):
                self._send(encode_envelope(Refill(view.number, number, len(parts), part)), HIGHEST, None)

    def _on_promised(self, promised: Promised) -> None:
        """A member takes part in the generation that begins."""
        if self._state.reports is not None and self._is_of_view(promised.view):
            self._promised.add(promised.member)
            self._begin_if_agreed()

    def _on_refill(self, refill: Refill) -> None:
        """A part of the state that all begin with."""
        if self._state.reports is not None and self._is_of_view(refill.view):
            self._parts[refill.part] = refill.data
            self._parts_count = refill.parts
            self._begin_if_agreed()

    def _is_of_view(self, number: int) -> bool:
        return self._state.view is not None and self._state.view.number == number

    def _begin_if_agreed(self) -> None:
        """Begin, if all have promised to, and have what they begin with."""
        state, view = self._state, self._state.view
        assert state.reports is not None and view is not None
        best = agreed_report(state.reports, view)
        if best is None or any(member.name not in self._promised for member in view.members):
            return
        is_filled = bool(self._parts) and len(self._parts) == self._parts_count
        if not is_filled and not all(_same(report, best) for report in state.reports.values()):
            return
        generation = next_generation(state.reports, view)
        if not _same(self._own, best):
            state.load(b"".join(self._parts[number] for number in range(self._parts_count)))
        self._forget_agreement()
        self._stored.clear()
        voters = best.voters or tuple(sorted(member.name for member in view.members))
        state.begin_generation(generation, voters, best.history)
        self._was_in_group = True

    def why_not_current(self) -> str:
        """What the members that found the group wait for; empty if they do not."""
        if self._state.reports is None or self._state.view is None:
            return ""
        return why_not_agreed(self._state.reports, self._state.view)

    # Answers

    def defer(self, answer: Answering) -> None:
        """Give an answer when everything that was applied so far is durable."""
        self._answers.append((self._state.index_to_sync, answer))
        self._give_answers()

    async def sync(self) -> None:
        """Sync what was recorded, again and again; ends with an error if the disk fails."""
        while True:
            is_awaited = await self._log.sync(self._state)
            if is_awaited and self._state.reports is None:
                self._announce()

    def _announce(self) -> None:
        """Say how far the disk is, once it has an entry of this generation: until then its log is older."""
        index = min(self._log.durable, self._state.index)
        if not self._state.lineage.has_begun_before(index):
            return
        self._send(encode_envelope(Stored(self._name, self._state.lineage.generation, index)), HIGHEST, None)

    def _on_stored(self, stored: Stored) -> None:
        """A member's disk has reached an index. One that was not known may not know this one either."""
        if stored.generation != self._state.lineage.generation or self._state.reports is not None:
            return
        is_new = stored.member not in self._stored and stored.member != self._name
        self._stored[stored.member] = max(stored.index, self._stored.get(stored.member, 0))
        if is_new:
            self._announce()
        self._give_answers()

    def _give_answers(self) -> None:
        durable = majority_index(self._state.lineage.voters, self._stored)
        while self._answers and self._answers[0][0] <= durable:
            self._answers.popleft()[1]()


def _same(report: LogReport, best: LogReport) -> bool:
    is_of_history = not best.voters or report.history == best.history
    return not report.is_damaged and report.tip == best.tip and is_of_history

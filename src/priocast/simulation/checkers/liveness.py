"""Liveness: once the faults have healed, the group is whole and every wish is fulfilled within a stated time.

A wish goes down with the life that had it: when that crashes, or leaves. When it is put out of the group,
the wish is handed on to the next life, unless the life had already delivered it itself (or answered the
client that had it): then it may be lost with the side of the cut that was left behind. Safe messages are
not. And a life that is put out because it was too slow does not say again what has its place, though it has
not consumed it: if it was alone in that view, on its side of a cut, nobody has.
"""

from collections.abc import Callable, Iterable, Mapping

from priocast.core.guarantees import LIVENESS
from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.simulation.application import State
from priocast.simulation.checkers.checker import Checker, Report, process_of
from priocast.simulation.checkers.chronicle import FELL_OUT, Chronicle
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.network import HEADER_BYTES
from priocast.simulation.scenario import Scenario
from priocast.simulation.workload import CLIENT, Wish, name_in
from priocast.trace.schema import GroupEventRow

FAILURE_TIMEOUTS = 10
"""In which the group becomes whole again, once everybody can hear everybody."""


class Liveness(Checker):
    """Knows who fulfilled which wish.

    `lacks` says what the run lacks, `wishes` are those to be fulfilled, `states` what those know who are
    there in the end: what they have from others, with a state, is fulfilled, too.
    """

    PROPERTY = LIVENESS

    def __init__(
        self,
        report: Report,
        chronicle: Chronicle,
        primary: bool,
        lacks: Callable[[], str | None],
        wishes: Callable[[], Iterable[Wish]],
        states: Callable[[], Mapping[str, State]],
    ) -> None:
        super().__init__(report)
        self._chronicle = chronicle
        self._primary = primary
        self._lacks = lacks
        self._wishes = wishes
        self._states = states
        self._fulfilled: dict[str, list[tuple[str, int]]] = {}
        self._sender_of: dict[str, str] = {}
        self._slow: set[str] = set()

    def on_message(self, me: ProcessId, message: Message, view: int) -> None:
        """An application has a message in hand, in the view of this number."""
        wish = name_in(message.payload)
        self._fulfilled.setdefault(wish, []).append((str(me), view))
        self._sender_of[wish] = str(message.sender)

    def on_stopped(self, row: GroupEventRow) -> None:
        if any((name, cause) == (row.member, "slow") for name, cause, _ in row.evicted):
            self._slow.add(process_of(row))

    def finish(self, now: int) -> None:
        lacks = self._lacks()
        if lacks:
            self.violated(lacks, now)
            return
        onward = {
            (stay.process, stay.view[0]): stay.onward
            for life in self._chronicle.lives.values()
            for stay in life.stays
        }
        known = set().union(*(state.wishes for state in self._states().values()))
        for wish in self._wishes():
            if wish.name in known:
                continue
            deliveries = self._fulfilled.get(wish.name, [])
            owner = wish.name.partition(".")[0]
            was_slow = any(_is_of(owner, process) for process in self._slow)
            if was_slow and not deliveries and not self._primary:
                continue
            of_slow = self._sender_of.get(wish.name) in self._slow
            if not any(
                of_slow
                or onward[delivery] != FELL_OUT
                or (not wish.scope.safe and _is_of(owner, delivery[0]))
                for delivery in deliveries
            ):
                by = ", ".join(sorted({process for process, _ in deliveries})) or "nobody"
                text = f"{wish.name} was delivered by {by}, and by none of those who went on"
                self.violated(text, now, members=[owner])
                return


def _is_of(owner: str, process: str) -> bool:
    return owner in (CLIENT, process.rpartition("#")[0])


def deadline_ns(scenario: Scenario, wishes: Iterable[Wish]) -> int:
    """By when all is well: after the last fault and the last wish, `FAILURE_TIMEOUTS` and the work itself.

    In the worst case (a window of one message, no batches) a token goes round for every message, which then
    takes two hops to its place and two more until the slowest member has reported it, a frame to and from
    each member at every hop, and the time that the slowest application needs. A client may try each member in
    turn. And in links that were not noticed to be cut, retransmission timers had doubled, on the way in and
    on the way out.
    """
    network, processor, workload = scenario.network, scenario.processor, scenario.workload
    last_wish = size = 0
    count = workload.client_requests
    for wish in wishes:
        last_wish = max(last_wish, wish.time)
        count += 1
        size += len(wish.payload) + HEADER_BYTES
    frames = 4 * len(scenario.members)
    latency_us = network.latency_us + 3 * network.latency_spread_us
    each_us = (
        (4 + len(scenario.members)) * latency_us + 2 * frames * processor.frame_us + max(workload.consume_us)
    )
    each_ns = each_us * MICROSECOND + 4 * processor.message_ns
    byte_ns = 2 * processor.byte_ns
    if network.bandwidth_bytes_per_second is not None:
        byte_ns += 1_000_000_000 // network.bandwidth_bytes_per_second
    size += len(scenario.members) * workload.state_bytes
    work_ns = count * each_ns + frames * size * byte_ns
    work_ns += workload.client_requests * len(scenario.members) * workload.client_patience_us * MICROSECOND
    waited_ns = FAILURE_TIMEOUTS * scenario.membership.failure_ns + 2 * scenario.link.retransmit_ns_max
    return max(scenario.faults.healed_at_us * MICROSECOND, last_wish) + work_ns + waited_ns

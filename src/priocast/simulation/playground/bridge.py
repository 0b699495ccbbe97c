"""What the page of the playground calls: texts go in, and JSON comes out.

The page runs this package in the browser, in WebAssembly. A call that was rejected is answered with the
reason, beside what there is to show.
"""

import msgspec

from priocast.core.errors import PriocastError
from priocast.core.priority import NAMED_LEVELS
from priocast.protocols import all_orders
from priocast.simulation.playground.link import MEMBERS_MAX, MEMBERS_MIN, parse_action, parse_link
from priocast.simulation.playground.playground import Playground
from priocast.simulation.playground.snapshot import PlaygroundSnapshot, take_snapshot


class BridgeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to show, and why a call was rejected."""

    rejected: str = ""
    snapshot: PlaygroundSnapshot | None = None


class Choosable(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen for a run."""

    orders: list[str]
    priorities: dict[str, int]
    members_min: int = MEMBERS_MIN
    members_max: int = MEMBERS_MAX


class Bridge:
    """One playground at a time."""

    def __init__(self) -> None:
        self._playground = Playground(parse_link(""))

    def choosable(self) -> str:
        """The orders and named priorities."""
        return _json(Choosable(orders=all_orders(["sequencer-ub"]), priorities=NAMED_LEVELS))

    def start(self, link: str) -> str:
        """Start the run of a link, with all its actions, up to the time of the last one."""
        try:
            parsed = parse_link(link)
            playground = Playground(msgspec.structs.replace(parsed, actions=()))
            for action in parsed.actions:
                playground.act(action)
        except PriocastError as error:
            return self._answer(str(error))
        self._playground = playground
        return self._answer()

    def advance(self, until_ms: int) -> str:
        """Let the time pass."""
        self._playground.advance(until_ms)
        return self._answer()

    def act(self, action: str) -> str:
        """Do something now: an action without its time."""
        playground = self._playground
        try:
            playground.act(parse_action(f"{playground.time_ms}:{action}", playground.scenario.members))
        except PriocastError as error:
            return self._answer(str(error))
        return self._answer()

    def finish(self) -> str:
        """Run to the end, and check everything."""
        self._playground.finish()
        return self._answer()

    def _answer(self, rejected: str = "") -> str:
        return _json(BridgeAnswer(rejected=rejected, snapshot=take_snapshot(self._playground)))


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()

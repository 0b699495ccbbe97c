"""A link: everything that determines a run of the playground, as the text after the `#` of its address.

    seed=7&order=token-ring&priorities=plain&members=4&load=200&do=120:send:a:224;180:cut:a-b;400:end

The same link gives the same run, in a browser as in `priocast simulate --link`. With `run=drawn`, the seed
draws every option, as in `priocast simulate --seeds`, but for the order and the number of members if they are
given.
"""

from itertools import pairwise
from typing import Literal, cast, get_args

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.priority import BACKGROUND, ROUTINE, URGENT, check_priority
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.protocols import find_protocol
from priocast.simulation.choice import Choice
from priocast.simulation.faults import FaultOptions
from priocast.simulation.scenario import NetworkOptions, Scenario, WorkloadOptions
from priocast.simulation.scenario_generator import generate_scenario

ActionKind = Literal["send", "kill", "start", "pause", "resume", "cut", "heal", "end"]

MEMBERS_MIN, MEMBERS_MAX = 2, 9
LOAD_PERCENT_MAX = 400
COUNT_MAX = 50
ACTIONS_MAX = 2_000
TIME_MS_MAX = 3_600_000
_SEED_MAX = 2**53  # what a browser's numbers hold
_KEYS = ("run", "seed", "order", "priorities", "members", "load", "do")

#: A group whose queues can be watched: an application consumes 200 messages a second.
_CONSUME_US = 5_000
_LOAD_FROM_US = 60_000
_LOAD_FOR_US = 500_000
_MIX = ((BACKGROUND, 5), (ROUTINE, 4), (URGENT, 1))


class UserAction(msgspec.Struct, frozen=True):
    """What somebody does at a time: with a member, or a cut with several; what is sent has a priority."""

    at_ms: int
    kind: ActionKind
    members: tuple[str, ...] = ()
    priority: int = ROUTINE
    count: int = 1

    def __str__(self) -> str:
        parts = [str(self.at_ms), self.kind, "-".join(self.members)]
        if self.kind == "send":
            parts += [str(self.priority), str(self.count)]
        return ":".join(parts).rstrip(":")


class PlaygroundLink(msgspec.Struct, frozen=True, kw_only=True):
    """What determines a run. In a drawn run, an empty order and 0 members are drawn, too.

    `load` is in percent of what the applications consume, for half a second.
    """

    seed: int = 1
    drawn: bool = False
    order: str = ""
    prioritised: bool = True
    members: int = 0
    load: int = 200
    actions: tuple[UserAction, ...] = ()

    def __str__(self) -> str:
        parts = [f"run={'drawn' if self.drawn else 'group'}", f"seed={self.seed}"]
        if self.order:
            parts.append(f"order={self.order}")
        if not self.drawn:
            parts.append(f"priorities={'first' if self.prioritised else 'plain'}")
        if self.members:
            parts.append(f"members={self.members}")
        if not self.drawn:
            parts.append(f"load={self.load}")
        if self.actions:
            parts.append("do=" + ";".join(map(str, self.actions)))
        return "&".join(parts)

    @property
    def command(self) -> str:
        """The command that runs the same outside a browser and writes the same digest."""
        if not self.drawn or self.actions:
            return f"priocast simulate --link '{self}'"
        return f"priocast simulate --seeds {self.seed} {self._choice}".rstrip()

    @property
    def _choice(self) -> Choice:
        return Choice(order=self.order or None, members=self.members or None)

    def scenario(self) -> Scenario:
        """The options of the run, without the actions."""
        if self.drawn:
            return generate_scenario(self.seed, self._choice)
        size = self.members
        total = self.load * (1_000_000 // _CONSUME_US) * _LOAD_FOR_US // 1_000_000 // 100
        return Scenario(
            seed=self.seed,
            order=self.order,
            ordering=OrderingOptions(prioritised=self.prioritised, window=4),
            workload=WorkloadOptions(
                messages=tuple(total // size + (rank < total % size) for rank in range(size)),
                rate_per_second=(max(1, total * 1_000_000 // _LOAD_FOR_US // size),) * size,
                consume_us=(_CONSUME_US,) * size,
                start_us=(0,) * size,
                broadcast_from_us=_LOAD_FROM_US,
                priorities=_MIX,
            ),
            membership=MembershipOptions(
                founders=size, heartbeat_ms=20, failure_ms=150, slow_ms=1_000, state=True
            ),
            network=NetworkOptions(latency_us=1_000, latency_spread_us=300, latency_shape="uniform"),
            faults=FaultOptions(reconnects=True),
        )


def parse_link(text: str) -> PlaygroundLink:
    """Parse a link, with or without what comes before its `#`; an error says what is wrong with it."""
    values = dict.fromkeys(_KEYS, "")
    for part in filter(None, text.rpartition("#")[2].split("&")):
        key, _, value = part.partition("=")
        if key not in values:
            raise InvalidOption(f"{key!r} is not part of a link: there are {', '.join(_KEYS)}")
        values[key] = value
    drawn = _one_of("run", values["run"] or "group", ("group", "drawn")) == "drawn"
    priorities = _one_of("priorities", values["priorities"] or "first", ("first", "plain"))
    link = PlaygroundLink(
        seed=_number("seed", values["seed"] or "1", 0, _SEED_MAX),
        drawn=drawn,
        order=values["order"] or ("" if drawn else "sequencer-ub"),
        prioritised=priorities == "first",
        members=_number("members", values["members"] or ("0" if drawn else "4"), 0, MEMBERS_MAX),
        load=_number("load", values["load"] or "200", 0, LOAD_PERCENT_MAX),
    )
    if link.members < MEMBERS_MIN and not (drawn and not link.members):
        raise InvalidOption(f"members is {link.members}: it must be between {MEMBERS_MIN} and {MEMBERS_MAX}")
    if link.order:
        find_protocol(link.order)
    return msgspec.structs.replace(link, actions=_parse_actions(values["do"], link.scenario().members))


def _parse_actions(text: str, members: tuple[str, ...]) -> tuple[UserAction, ...]:
    actions = tuple(parse_action(part, members) for part in text.split(";") if part)
    if len(actions) > ACTIONS_MAX:
        raise InvalidOption(f"a link has at most {ACTIONS_MAX} actions, not {len(actions)}")
    if any(later.at_ms < earlier.at_ms for earlier, later in pairwise(actions)):
        raise InvalidOption("the actions of a link must be in the order of their times")
    return actions


def parse_action(text: str, members: tuple[str, ...]) -> UserAction:
    """Parse an action, such as `120:send:a:224` or `180:cut:a-b`, in a group of these processes."""
    at, kind, names, priority, count, *more = [*text.split(":"), "", "", "", ""]
    if any(more):
        raise InvalidOption(f"{text!r} has too many parts for an action: time:kind:members:priority:count")
    action = UserAction(
        _number("the time of an action", at, 0, TIME_MS_MAX),
        cast("ActionKind", _one_of("an action", kind, get_args(ActionKind))),
        tuple(filter(None, names.split("-"))),
        check_priority(_number("the priority of a message", priority or str(ROUTINE), 0, 255)),
        _number("the number of messages", count or "1", 1, COUNT_MAX),
    )
    for name in action.members:
        _one_of("a member", name, members)
    wanted = 0 if action.kind in ("heal", "end") else 1
    if len(action.members) != wanted and (action.kind != "cut" or not action.members):
        raise InvalidOption(f"{text!r} names {len(action.members)} members: {kind} takes {wanted}")
    return action


def _number(name: str, text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit()) or not least <= int(text[:20]) <= most:
        raise InvalidOption(f"{name} is {text[:20]!r}: it must be a number from {least} to {most}")
    return int(text)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InvalidOption(f"{name} is {value[:40]!r}: there are {', '.join(known)}")
    return value

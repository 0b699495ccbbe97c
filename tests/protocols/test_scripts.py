"""Scripts: what a protocol does, step by step, as text that is reviewed like code.

A script in `scripts/` is a list of commands, each with what it printed below it:

    > broadcast b routine r1 r2
    > turn b
        b -> a: submit [b routine: r1 r2]

Commands: `members NAME... [OPTION=VALUE...]` makes the group; `broadcast NAME LEVEL PAYLOAD...`; `turn NAME`;
`arrive FROM->TO [PACKETS]`; `consume NAME [MESSAGES]`; `wait DURATION`; `jam FROM->TO` and `clear FROM->TO`;
`backlog NAME`; `settle`. A line that is neither a command nor its output is a comment.
`pytest --rewrite` writes the outputs anew: look at the difference before you commit it.
"""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest

from priocast.core.errors import PriocastError
from priocast.core.message import Batch
from priocast.core.priority import NAMED_LEVELS, parse_priority
from priocast.core.protocol import OrderingOptions, Packet
from priocast.core.starvation import Ageing, parse_starvation
from priocast.protocols import find_protocol
from protocols.harness import Delivered, Group, Happening, Received, Sent

SCRIPTS = Path(__file__).parent / "scripts"
COMMAND = "> "
INDENT = "    "
_LEVEL_NAMES = {level: name for name, level in NAMED_LEVELS.items()}


class ScriptRunner:
    """Carries out commands on a group and says what happened."""

    def __init__(self) -> None:
        self._group: Group | None = None

    @property
    def group(self) -> Group:
        assert self._group is not None, "a script begins with `members`"
        return self._group

    def run(self, line: str) -> list[str]:
        """Carry out one command; return the lines that it prints."""
        name, *words = line.split()
        command: Callable[..., list[str] | None] = getattr(self, f"do_{name}")
        seen = len(self._group.journal) if self._group else 0
        try:
            said = command(*words)
        except PriocastError as error:
            said = [f"{type(error).__name__}: {error}"]
        return _render(self.group.journal[seen:]) if said is None else said

    def do_members(self, *words: str) -> list[str]:
        names = [word for word in words if "=" not in word]
        given = dict(word.split("=") for word in words if "=" in word)
        order = given.pop("order", "sequencer-ub")
        options = OrderingOptions(
            prioritised=given.pop("prioritised", "yes") == "yes",
            starvation=parse_starvation(given.pop("starvation", "none")),
            distributed=given.pop("distributed", "no") == "yes",
        )
        numbers: dict[str, Any] = {name: int(value) for name, value in given.items()}
        options = msgspec.structs.replace(options, **numbers)
        self._group = Group(names, order, options)
        orderer = find_protocol(order).orderer(self.group.view)
        return [f"{order}; {orderer.name if orderer else 'nobody'} orders"]

    def do_broadcast(self, name: str, level: str, *payloads: str) -> list[str]:
        accepted = self.group.broadcast(name, parse_priority(level), [word.encode() for word in payloads])
        return [] if accepted == len(payloads) else [f"room for {accepted} of {len(payloads)}"]

    def do_turn(self, name: str) -> None:
        self.group.turn(name)

    def do_arrive(self, link: str, packets: str = "1") -> list[str] | None:
        source, target = link.split("->")
        return None if self.group.deliver(source, target, int(packets)) else ["nothing is on its way"]

    def do_consume(self, name: str, messages: str = "1") -> list[str] | None:
        return None if self.group.consume(name, int(messages)) else ["nothing to consume"]

    def do_wait(self, duration: str) -> None:
        policy = parse_starvation(f"ageing:{duration}")
        assert isinstance(policy, Ageing)
        self.group.now += policy.step_ns
        self.group.tick()

    def do_jam(self, link: str) -> None:
        source, target = link.split("->")
        self.group.links[source, target].congested = True

    def do_clear(self, link: str) -> None:
        source, target = link.split("->")
        self.group.links[source, target].congested = False

    def do_backlog(self, name: str) -> list[str]:
        return [f"{self.group.members[name].backlog} wait at {name}"]

    def do_settle(self) -> list[str]:
        """Let everything happen, and say in which order everybody has delivered everything so far."""
        assert self.group.settle(rounds_max=1_000)
        orders: dict[str, list[str]] = {}
        for name in self.group.members:
            delivered = [
                happened.message.payload.decode()
                for happened in self.group.journal
                if isinstance(happened, Delivered) and happened.member == name
            ]
            orders.setdefault(" ".join(delivered), []).append(name)
        return [f"{' '.join(names)} delivered: {order}" for order, names in orders.items()]


def _render(happenings: list[Happening]) -> list[str]:
    """One line for a packet and one for what a member delivers; what comes from oneself is not repeated."""
    lines = []
    for _, group in groupby(happenings, key=lambda happened: (type(happened), happened.member)):
        together = list(group)
        delivered = [
            f"{happened.position}:{happened.message.payload.decode()}"
            for happened in together
            if isinstance(happened, Delivered)
        ]
        if delivered:
            lines.append(f"{together[0].member} delivers {' '.join(delivered)}")
        for happened in together:
            if isinstance(happened, Sent):
                lines.append(f"{happened.member} -> {happened.to or 'all'}: {_packet(happened.packet)}")
            elif isinstance(happened, Received) and happened.peer != happened.member:
                lines.append(f"{happened.member} <- {happened.peer}: {_packet(happened.packet)}")
    return lines


def _packet(packet: Packet) -> str:
    fields = {
        field: getattr(packet, field)
        for field in packet.__struct_fields__
        if field not in ("batches", "references")
    }
    words = [packet.name(), *(f"{field}={_value(value)}" for field, value in fields.items() if value != "")]
    for messages in packet.messages:
        if isinstance(messages, Batch):
            named = " ".join(payload.decode() for payload in messages.payloads())
        else:
            named = f"{messages.first}+{messages.count}"
        level = _LEVEL_NAMES.get(messages.level, messages.level)
        words.append(f"[{messages.sender.name} {level}: {named}]")
    return " ".join(words)


def _value(value: object) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


def replay(text: str) -> str:
    """The script as it should be: its commands and comments, with what the commands print now."""
    runner = ScriptRunner()
    lines = []
    for line in text.splitlines():
        if line.startswith(INDENT):
            continue
        lines.append(line)
        if line.startswith(COMMAND):
            lines += [f"{INDENT}{said}" for said in runner.run(line.removeprefix(COMMAND))]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path, request: pytest.FixtureRequest) -> None:
    recorded = path.read_text()
    replayed = replay(recorded)
    if request.config.getoption("--rewrite"):
        path.write_text(replayed)
    else:
        assert replayed == recorded


def test_there_are_scripts_and_a_changed_output_shows() -> None:
    recorded = (SCRIPTS / "sequencer-plain-order.txt").read_text()
    changed = recorded.replace("delivers 0:", "delivers 1:")
    assert changed != recorded
    assert replay(changed) == recorded


def test_what_a_script_does_wrong_is_printed_as_an_error() -> None:
    said = replay("> members a\n> broadcast a nonsense x\n")
    assert "PriorityOutOfRange: 'nonsense' is neither a number from 0 to 255" in said

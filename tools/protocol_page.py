"""Generates `docs/protocols.md` from the protocols' docstrings and from counts of the simulator.

python -m tools.protocol_page docs/protocols.md
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from priocast.core.protocol_interface import Protocol
from priocast.protocols import PROTOCOLS, find_protocol
from tools.message_costs import MessageCosts, measure_costs, steps

SIZES = (4, 8)
HEADINGS = ("Gives", "Costs", "Orders", "Assumes", "Priorities act", "Reference", "Diverges")
LAYERED = ("time-parts/sequencer-ub", "count-parts/sequencer-ub")
_INTRODUCTION = """# The protocols

This page is generated (`make docs`): the texts are the protocols' docstrings, the numbers and diagrams come
from the simulator. Every protocol runs under the same membership layer, behind the same API, and a running
group can change to another one (`group.change_order`).

## What a message costs

A *hop* is one frame from one process to another. *Single*: one message in an idle group, and the hops until
the last member has delivered it, sent by the view's coordinator and by another member; the wait for the end
of a part in the layers, and for silent members in `all-ack`, is extra. *Stream*: single messages from all
members, far apart. *Bursts*: every member sends 64 messages at once, repeatedly; they share frames. Frames
count packets between two processes; acknowledgements and heartbeats come in addition and are the same for all
protocols.
"""
_NOT_PARTITIONABLE = (
    "partitionable groups. Members may learn positions by other means than packets to all, so the sides of a "
    "partition could not know what the others delivered."
)


def page(orders: tuple[str, ...]) -> str:
    """The whole page."""
    costs = {order: [measure_costs(order, size) for size in SIZES] for order in orders}
    parts = [_INTRODUCTION, *_table(costs), ""]
    for order in orders:
        parts += _section(order, costs[order][0])
    return "\n".join(parts)


def documented(protocol: type[Protocol]) -> dict[str, str]:
    """The documentation of a protocol's module, by heading; the title has an empty heading."""
    text = inspect.getdoc(inspect.getmodule(protocol)) or ""
    title, _, rest = text.partition("\n\n")
    found = {"": " ".join(title.split())}
    for heading, text_below in re.findall(
        rf"^({'|'.join(HEADINGS)}): (.*?)(?=^\S|\Z)", rest, re.DOTALL | re.MULTILINE
    ):
        found[heading] = " ".join(text_below.split())
    return found


def _table(costs: dict[str, list[MessageCosts]]) -> Iterator[str]:
    sizes = ", ".join(f"n = {size}" for size in SIZES)
    yield (
        "| protocol | priorities act by | hops, single: coordinator, other | frames, single: "
        f"{sizes} | stream: {sizes} | bursts: {sizes} |"
    )
    yield "|---|---|---|---|---|---|"
    for order, of_sizes in costs.items():
        small = of_sizes[0]
        frames = ", ".join(str(len(each.from_other.arrivals)) for each in of_sizes)
        stream = ", ".join(f"{each.frames_spaced:.1f}" for each in of_sizes)
        bursts = ", ".join(f"{each.frames_in_bursts:.2f}" for each in of_sizes)
        yield (
            f"| [`{order}`](#{_anchor(order)}) | {find_protocol(order).PRIORITIES_ACT} "
            f"| {small.from_coordinator.hops}, {small.from_other.hops} "
            f"| {frames} | {stream} | {bursts} |"
        )


def _section(order: str, cost: MessageCosts) -> Iterator[str]:
    protocol = find_protocol(order)
    sections = documented(protocol)
    yield f"## {order}\n"
    yield f"{sections['']}\n"
    for heading in HEADINGS:
        if heading in sections:
            yield f"- **{heading}**: {sections[heading]}"
    if not protocol.PARTITIONABLE:
        yield f"- **Gives up**: {_NOT_PARTITIONABLE}"
    yield f"\nOne message of *b* in an idle group of {cost.members}:\n"
    yield from _diagram(cost)
    yield ""


def _diagram(cost: MessageCosts) -> Iterator[str]:
    """The packets, hop by hop, as a Mermaid sequence diagram."""
    names = [chr(ord("a") + index) for index in range(cost.members)]
    yield "```mermaid"
    yield "sequenceDiagram"
    for name in names:
        yield f"    participant {name}"
    last = 0
    for hop, source, targets, packet in steps(cost.from_other.arrivals):
        if hop != last:
            yield f"    note over {names[0]},{names[-1]}: hop {hop}"
            last = hop
        for target in targets:
            yield f"    {source}->>{target}: {packet}"
    yield "```"


def _anchor(order: str) -> str:
    return order.replace("/", "")


def main() -> None:
    """Write the page to the path given on the command line."""
    Path(sys.argv[1]).write_text(page((*PROTOCOLS, *LAYERED)))


if __name__ == "__main__":
    main()

"""The page about the protocols, `docs/protocols.md`: from their docstrings, and as the simulator counts.

python -m priocast.study.protocol_page docs/protocols.md
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from priocast.core.protocol import Protocol
from priocast.protocols import PROTOCOLS, find_protocol
from priocast.study.anatomy import Anatomy, dissect, steps

SIZES = (4, 8)
HEADINGS = ("Gives", "Costs", "Orders", "Assumes", "Priorities act", "Reference", "Diverges")
LAYERED = ("time-parts/sequencer-ub", "count-parts/sequencer-ub")
_INTRODUCTION = """# The protocols

This page is generated (`make docs`): the texts are the protocols' own docstrings, the numbers and the
diagrams come from the simulator. Every protocol runs under the same membership layer, behind the same API,
and may be changed for another one while the group runs (`group.change_order`).

## What a message costs

A *hop* is the way of a frame from one process to another. *Alone*: one message in an idle group, and the hops
until the last member has delivered it, sent by the view's coordinator and by another member; in the layers
the wait for the end of a part comes on top. *Stream*: single messages from all members, far apart. *Bursts*:
every member sends 64 messages at once, again and again; they share frames. Frames count packets between two
processes; acknowledgements and signs of life come on top and are the same for all.
"""
_NOT_PARTITIONABLE = (
    "partitionable groups. Members may know places by other means than by what was sent to all, so the sides "
    "of a cut could not tell what the others delivered."
)


def page(orders: tuple[str, ...]) -> str:
    """The whole page."""
    anatomies = {order: [dissect(order, size) for size in SIZES] for order in orders}
    parts = [_INTRODUCTION, *_table(anatomies), ""]
    for order in orders:
        parts += _section(order, anatomies[order][0])
    return "\n".join(parts)


def documented(protocol: type[Protocol]) -> dict[str, str]:
    """What a protocol's module says about it, by heading; the title under an empty one."""
    text = inspect.getdoc(inspect.getmodule(protocol)) or ""
    title, _, rest = text.partition("\n\n")
    found = {"": " ".join(title.split())}
    for heading, said in re.findall(
        rf"^({'|'.join(HEADINGS)}): (.*?)(?=^\S|\Z)", rest, re.DOTALL | re.MULTILINE
    ):
        found[heading] = " ".join(said.split())
    return found


def _table(anatomies: dict[str, list[Anatomy]]) -> Iterator[str]:
    sizes = ", ".join(f"n = {size}" for size in SIZES)
    yield (
        "| protocol | priorities act by | hops alone: coordinator, other | frames alone: "
        f"{sizes} | stream: {sizes} | bursts: {sizes} |"
    )
    yield "|---|---|---|---|---|---|"
    for order, of_sizes in anatomies.items():
        small = of_sizes[0]
        frames = ", ".join(str(len(each.alone_of_other.arrivals)) for each in of_sizes)
        stream = ", ".join(f"{each.frames_spaced:.1f}" for each in of_sizes)
        bursts = ", ".join(f"{each.frames_in_bursts:.2f}" for each in of_sizes)
        yield (
            f"| [`{order}`](#{_anchor(order)}) | {find_protocol(order).PRIORITIES_ACT} "
            f"| {small.alone_of_coordinator.hops}, {small.alone_of_other.hops} "
            f"| {frames} | {stream} | {bursts} |"
        )


def _section(order: str, anatomy: Anatomy) -> Iterator[str]:
    protocol = find_protocol(order)
    said = documented(protocol)
    yield f"## {order}\n"
    yield f"{said['']}\n"
    for heading in HEADINGS:
        if heading in said:
            yield f"- **{heading}**: {said[heading]}"
    if not protocol.PARTITIONABLE:
        yield f"- **Gives up**: {_NOT_PARTITIONABLE}"
    yield f"\nOne message of *b* in an idle group of {anatomy.members}:\n"
    yield from _diagram(anatomy)
    yield ""


def _diagram(anatomy: Anatomy) -> Iterator[str]:
    """Who tells whom what, hop by hop, in the notation of Mermaid."""
    names = [chr(ord("a") + index) for index in range(anatomy.members)]
    yield "```mermaid"
    yield "sequenceDiagram"
    for name in names:
        yield f"    participant {name}"
    last = 0
    for hop, source, targets, packet in steps(anatomy.alone_of_other.arrivals):
        if hop != last:
            yield f"    note over {names[0]},{names[-1]}: hop {hop}"
            last = hop
        for target in targets:
            yield f"    {source}->>{target}: {packet}"
    yield "```"


def _anchor(order: str) -> str:
    return order.replace("/", "")


def main() -> None:
    """Write the page where the command line says."""
    Path(sys.argv[1]).write_text(page((*PROTOCOLS, *LAYERED)))


if __name__ == "__main__":
    main()

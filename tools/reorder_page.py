"""Generates `docs/reorder.md`: the examples of the reorder paper, executed and explained.

python -m tools.reorder_page docs/reorder.md
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from priocast.core.identity import MessageId, ProcessId
from priocast.core.priority import BACKGROUND, ROUTINE, URGENT
from priocast.pipeline.figures.explanation import write_explanation
from priocast.trace.explanation import Explanation, explain
from priocast.trace.explanation_text import describe
from priocast.trace.recorded_run import open_run
from tools.scripted_group import ScriptedGroup

FIGURES = "figures"
_INTRODUCTION = """# Queue re-ordering

This page is generated (`make docs`): small groups execute the figures of the reorder paper with the protocols
as they are shipped, and `priocast explain` explains their traces. To explain a message of your own:

    priocast explain TRACE --message SENDER#INCARNATION/LEVEL/NUMBER --figure why.svg
    priocast explain TRACE --worst

In [`reorder`](protocols.md#reorder) and [`reorder-locks`](protocols.md#reorder-locks) an urgent message
overtakes messages that have been ordered and are queued at all members, as long as no member has consumed
them. Of two messages the less urgent one goes first exactly if some member had consumed it when that member
received the other one: `priocast verify` checks that, as *Priority accounting*.

In the figures, each member has its queue when the message arrived, and the queue with the message in it; the
head is on top. What the member had consumed is faded, above the line.
"""


class Scene(NamedTuple):
    """One example: the script, the protocol, and the messages to explain."""

    name: str
    title: str
    text: str
    order: str
    play: Callable[[str], ScriptedGroup]
    messages: tuple[MessageId, ...]


def figure_2(order: str) -> ScriptedGroup:
    """Three processes have m and n queued, the first has consumed m, and h arrives."""
    group = ScriptedGroup(["p1", "p2", "p3"], order)
    group.broadcast("p2", BACKGROUND, b"m", b"n")
    group.settle()
    group.consume("p1")
    group.broadcast("p3", URGENT, b"h")
    group.finish()
    return group


def figure_3(order: str) -> ScriptedGroup:
    """Two processes have l queued; m and h are concurrent, and each arrives first at its own sender."""
    group = ScriptedGroup(["p1", "p2"], order)
    group.broadcast("p1", BACKGROUND, b"l")
    group.settle()
    group.broadcast("p1", ROUTINE, b"m")
    group.broadcast("p2", URGENT, b"h")
    group.finish()
    return group


def _message(sender: str, level: int, number: int = 0) -> MessageId:
    return MessageId(ProcessId(sender), level, number)


SCENES = (
    Scene(
        "reorder-figure-2",
        "Figure 2: h goes before n, because one process has consumed m",
        """Three processes have two messages of low priority queued, m (`p2#1/32/0`) and n (`p2#1/32/1`).
The first process is faster than the others and has consumed m. Then h (`p3#1/224/0`) arrives, with high
priority. It is inserted at the head of the queue of the fastest process, which is before n, and at the same
position everywhere else, where it waits for m.""",
        "reorder",
        figure_2,
        (_message("p3", URGENT),),
    ),
    Scene(
        "reorder-figure-3",
        "Figure 3: l, m and h, of which m and h are concurrent",
        """Two processes have l (`p1#1/32/0`) queued, and nobody has consumed it. Then m (`p1#1/96/0`) and h
(`p2#1/224/0`) are sent concurrently, with P(l) < P(m) < P(h). Both overtake l; the first process receives m
first, the second one h. Neither has been consumed when the other one arrives, so the more urgent one goes
first at both: h, m, l.

The example uses lock-sets, the paper's own form. *Locked by it* are the less urgent messages that no process
consumes before it is inserted. A message that arrived before it and has no position yet, as m at the first
process when h arrives, inherits the lock with its position: a trace does not tell these from others.""",
        "reorder-locks",
        figure_3,
        (_message("p2", URGENT), _message("p1", ROUTINE)),
    ),
)


def explanations(scene: Scene) -> list[Explanation]:
    """Execute a scene, write its trace, and explain its messages."""
    with TemporaryDirectory() as directory:
        trace = Path(directory) / scene.name
        scene.play(scene.order).write(trace, scene.name)
        run = open_run(trace)
        return [explain(run, message) for message in scene.messages]


def write(path: Path) -> None:
    """Write the page, and its figures beside it."""
    parts = [_INTRODUCTION]
    (path.parent / FIGURES).mkdir(exist_ok=True)
    for scene in SCENES:
        parts += [f"## {scene.title}\n", f"{scene.text}\n"]
        for number, explanation in enumerate(explanations(scene), 1):
            figure = f"{FIGURES}/{scene.name}-{number}.svg"
            write_explanation(explanation, path.parent / figure)
            parts += _section(scene, explanation, figure)
    path.write_text("\n".join(parts))


def _section(scene: Scene, explanation: Explanation, figure: str) -> Iterator[str]:
    yield f"`priocast explain {scene.name} --message {explanation.message}` says:\n"
    yield "```text"
    yield from describe(explanation)
    yield "```\n"
    yield f"![The queues at which {explanation.message} arrived]({figure})\n"


if __name__ == "__main__":
    write(Path(sys.argv[1]))

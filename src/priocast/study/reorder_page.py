"""The page about queue re-ordering, `docs/reorder.md`: the paper's examples, played and explained.

python -m priocast.study.reorder_page docs/reorder.md
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from priocast.core.identity import MessageId, ProcessId
from priocast.core.priority import BACKGROUND, ROUTINE, URGENT
from priocast.pipeline.figures.explanation import write_explanation
from priocast.study.stage import Stage
from priocast.trace.explanation import Explanation, explain
from priocast.trace.explanation_text import describe
from priocast.trace.recorded_run import open_run

FIGURES = "figures"
_INTRODUCTION = """# Queue re-ordering

This page is generated (`make docs`): small groups play what the reorder paper draws, with the protocols as
they are shipped, and `priocast explain` explains their traces. To explain a message of your own:

    priocast explain TRACE --message SENDER#LIFE/LEVEL/NUMBER --figure why.svg
    priocast explain TRACE --worst

In [`reorder`](protocols.md#reorder) and [`reorder-locks`](protocols.md#reorder-locks) an urgent message
overtakes messages that have been ordered and are queued at all members, as long as no member has consumed
them. Of two messages the less urgent one goes first exactly if some member had consumed it when the other one
came there: `priocast verify` checks that, as *Priority accounting*.

In the figures, each member has its queue when the message came, and the queue with the message in it; the
head is on top. What the member had consumed is faded, above the line.
"""


class Scene(NamedTuple):
    """One example: what is played, in which order, and which messages are explained."""

    name: str
    title: str
    text: str
    order: str
    play: Callable[[str], Stage]
    messages: tuple[MessageId, ...]


def figure_2(order: str) -> Stage:
    """Three processes have m and n queued, the first has consumed m, and h comes."""
    stage = Stage(["p1", "p2", "p3"], order)
    stage.broadcast("p2", BACKGROUND, b"m", b"n")
    stage.settle()
    stage.consume("p1")
    stage.broadcast("p3", URGENT, b"h")
    stage.finish()
    return stage


def figure_3(order: str) -> Stage:
    """Two processes have l queued; m and h come at once, and each has its place first where it was sent."""
    stage = Stage(["p1", "p2"], order)
    stage.broadcast("p1", BACKGROUND, b"l")
    stage.settle()
    stage.broadcast("p1", ROUTINE, b"m")
    stage.broadcast("p2", URGENT, b"h")
    stage.finish()
    return stage


def _message(sender: str, level: int, number: int = 0) -> MessageId:
    return MessageId(ProcessId(sender), level, number)


SCENES = (
    Scene(
        "reorder-figure-2",
        "Figure 2: h goes before n, because one process has consumed m",
        """Three processes have two messages of low priority queued, m (`p2#1/32/0`) and n (`p2#1/32/1`).
The first process is faster than the others and has consumed m. Then h (`p3#1/224/0`) comes, of high priority.
It is inserted at the head of the queue of the fastest process, which is before n, and at the same place
everywhere else: there it waits for m.""",
        "reorder",
        figure_2,
        (_message("p3", URGENT),),
    ),
    Scene(
        "reorder-figure-3",
        "Figure 3: l, m and h, of which m and h are concurrent",
        """Two processes have l (`p1#1/32/0`) queued, and nobody has consumed it. Then m (`p1#1/96/0`) and h
(`p2#1/224/0`) are sent at once, with P(l) < P(m) < P(h). Both overtake l; the first process hears of m first,
the second one of h. Neither has been consumed when the other one comes, so the more urgent one goes first at
both: h, m, l.

It is played with lock-sets, the paper's own form. *Locked by it* are the less urgent messages that nobody
consumes there before it is inserted. A message that came before it and has no place yet, as m at the first
process when h comes, inherits the lock with its place: a trace does not tell these from the others.""",
        "reorder-locks",
        figure_3,
        (_message("p2", URGENT), _message("p1", ROUTINE)),
    ),
)


def explanations(scene: Scene) -> list[Explanation]:
    """Play a scene, write its trace, and explain what it is about."""
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
    yield f"![The queues that {explanation.message} came to]({figure})\n"


if __name__ == "__main__":
    write(Path(sys.argv[1]))

"""The page that puts the papers' figures beside our code: `docs/paper-figures.md`.

python -m tools.paper_figures docs/paper-figures.md

The steps of a figure are told in our words; the code is read from the source, function by function.
"""

import html
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from priocast.protocols.agreement.skeen import AgreementSkeen
from priocast.protocols.flow.base import FlowControlledProtocol
from priocast.protocols.flow.coordinated import CoordinatedProtocol
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.exchange import Exchange
from priocast.protocols.reorder.level_queues import LevelQueues
from priocast.protocols.reorder.lock_queue import LockQueue
from priocast.protocols.reorder.locks import ReorderLocks
from priocast.protocols.reorder.reordering import ReorderingProtocol
from priocast.protocols.ring.token_ring import TokenRing
from priocast.protocols.sequencer.ub import SequencerUb

SOURCE = Path(__file__).parents[1] / "src"
_INTRODUCTION = """# The papers' figures beside our code

This page is generated from the source (`make docs`). On the left are the steps of a figure, in our words; on
the right the functions that implement them. Where they differ, the protocol's *Diverges* says why
([the protocols](protocols.md)). Three differences are everywhere: batches move, not messages; a message gets
its position only when every member has room for it (the window); and what a peer sends is validated first.
"""

Function = Callable[..., object]


class Step(NamedTuple):
    """One step of a figure, and the functions that implement it."""

    text: str
    functions: tuple[Function, ...]


class Figure(NamedTuple):
    """A figure of a paper, and the protocol that implements it."""

    protocol: str
    title: str
    steps: tuple[Step, ...]


FIGURES = (
    Figure(
        "sequencer-ub",
        "Fixed sequencer, unicast-broadcast: the techniques paper, figure 2; the cost paper, figure 1",
        (
            Step(
                "Sender. To broadcast m with a priority: send m to the sequencer.",
                (SequencerUb.on_turn, FlowControlledProtocol.send_own),
            ),
            Step(
                "Sequencer. When m is received: insert it into the incoming list, by priority.",
                (SequencerUb._on_submit,),
            ),
            Step(
                "Sequencer. While the incoming list is not empty: remove its first message, give it the next "
                "sequence number, send both to all.",
                (SequencerUb._order, CoordinatedProtocol._numbered_frames),
            ),
            Step(
                "Destination. When (m, number) is received: keep it as pending; deliver pending messages as "
                "long as one has the next number. (There is no pending set here: its packets "
                "arrive in order, over a FIFO link. Delivery waits for the application.)",
                (SequencerUb._on_ordered, FlowControlledProtocol.append_ordered),
            ),
        ),
    ),
    Figure(
        "token-ring",
        "Privilege-based: the techniques paper, figure 3; the cost paper, figure 2",
        (
            Step(
                "Sender. To broadcast m with a priority: insert it into the list of messages to send, by "
                "priority. (Here a member without the token also requests it, so that the token can rest.)",
                (TokenRing.on_turn, TokenRing._request_token),
            ),
            Step(
                "Sender. When the token is received: while there are messages to send, send the first one "
                "with the token's number to all, and count the number up.",
                (TokenRing._on_token, TokenRing._visit, TokenRing._send),
            ),
            Step("Sender. Then send the token to the next process.", (TokenRing._pass_token,)),
            Step(
                "Destination. When (m, number) is received: keep it as pending; deliver pending messages as "
                "long as one has the next number.",
                (TokenRing._on_ordered, TokenRing._append),
            ),
        ),
    ),
    Figure(
        "agreement-skeen",
        "Destinations agreement on one message, after Skeen: the techniques paper, section 5.5.1",
        (
            Step("Sender. Send m to all destinations.", (AgreementSkeen._send_data,)),
            Step(
                "Destination. When m is received: count the clock up, and reply with its value as the "
                "proposed timestamp.",
                (AgreementSkeen._on_data, AgreementSkeen._send_proposals),
            ),
            Step(
                "Sender. When all destinations have proposed: the highest proposal is final; send it to all.",
                (AgreementSkeen._on_proposed, AgreementSkeen._send_finals),
            ),
            Step(
                "Destination. When the final timestamp is received: set it, raise the clock to it, and "
                "deliver messages with final timestamps as long as no other message can get a lower one.",
                (AgreementSkeen._on_final, AgreementSkeen._append_final),
            ),
        ),
    ),
    Figure(
        "reorder",
        "Queue re-ordering, with cuts instead of lock-sets: the reorder paper, figures 1 and 4",
        (
            Step("To multicast j: send it to all.", (ReorderingProtocol.send_data,)),
            Step(
                "When p receives j: remember it, compute what its queue and its consumed-history say of it, "
                "and send that as an acknowledgment. (Here: up to where each lower level is consumed.)",
                (Reorder._on_data, LevelQueues.consumed_below, Exchange.acknowledge),
            ),
            Step(
                "When p receives an acknowledgment of j: add it to the bag of j.",
                (Exchange.collect,),
            ),
            Step(
                "When the bag has an acknowledgment of every member of the view: compute where j goes. "
                "(Here: its number in its level, and its cut, which is the latest of all.)",
                (Reorder._decision,),
            ),
            Step("Insert j into the queue there.", (Reorder._insert, LevelQueues.decide)),
            Step(
                "Consume (figure 1): when the first message of the queue is not locked, deliver it. (Here: "
                "when no higher level may have to go first, and the cut of the message is consumed.)",
                (LevelQueues.consumable, LevelQueues._waits_for_lower),
            ),
        ),
    ),
    Figure(
        "reorder-locks",
        "Concurrent queue re-ordering with lock-sets: the reorder paper, section 4.4, figures 1 and 4",
        (
            Step("To multicast j: send it to all.", (ReorderingProtocol.send_data,)),
            Step(
                "When p receives j: compute its target-tail, lock it (equations 2 and 3), and send the "
                "target-tail and the consumed-history as an acknowledgment.",
                (ReorderLocks._lock, LockQueue.lock, LockQueue._target_tail),
            ),
            Step("When p receives an acknowledgment of j: add it to the bag of j.", (Exchange.collect,)),
            Step(
                "When the bag has an acknowledgment of every member of the view: compute the common-set "
                "(equation 4), its first message as the provisional insertion point, and the history-set "
                "(equation 5).",
                (ReorderLocks._decision, LockQueue.first_of),
            ),
            Step(
                "Insert j at its definitive insertion point. Step 1: inherit the locks of more urgent "
                "messages. Step 2: go before less urgent messages that nobody had consumed (equation 6). "
                "Step 3: release locks. (Here, first: the wait rule.)",
                (
                    LockQueue._may_insert,
                    LockQueue._insert,
                    LockQueue._inherited,
                    LockQueue._definitive,
                    LockQueue._unlock,
                ),
            ),
            Step(
                "Consume (figure 1): when the first message of the queue is not locked, deliver it.",
                (LockQueue.consumable,),
            ),
        ),
    ),
)


def page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *(line for figure in FIGURES for line in _section(figure))])


def _section(figure: Figure) -> Iterator[str]:
    yield f"## {figure.protocol}\n"
    yield f"{figure.title}.\n"
    yield "<table>"
    yield "<tr><th>the paper</th><th>the code</th></tr>"
    for step in figure.steps:
        yield f'<tr><td valign="top">{html.escape(step.text)}</td><td valign="top">\n'
        for function in step.functions:
            path = Path(inspect.getsourcefile(function) or "").relative_to(SOURCE.parent)
            yield f"[`{path.relative_to('src/priocast')}`](../{path})\n"
            yield f"```python\n{dedent(inspect.getsource(function)).rstrip()}\n```\n"
        yield "</td></tr>"
    yield "</table>\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())

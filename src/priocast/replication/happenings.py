"""What became of a message that was delivered, for the replica that drives the state."""

import msgspec

from priocast.replication.commands import Answer, Barrier, CommandId, DiskMessage, Question
from priocast.replication.sessions import Outcome


class CommandFinished(msgspec.Struct, frozen=True, gc=False):
    """A command has its final outcome, or a repetition of it was skipped."""

    id: CommandId
    outcome: Outcome


class CommandSettled(msgspec.Struct, frozen=True, gc=False):
    """The answer to a `Settle`: what became of a command."""

    request: CommandId
    outcome: Outcome


Happened = CommandFinished | CommandSettled | Barrier | Question | Answer | DiskMessage

"""What replicas broadcast: commands and what belongs to them, as msgspec structs with bounded lengths.

A command is identified by its session and its number. A *session* is one start of a replica: the name and the
first incarnation of the member that submits, which stay the same when the member is evicted and rejoins. Each
message carries the clock of its sender: the time of the order is the highest one so far.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec

from priocast.core.identity import NAME_LENGTH_MAX, Name, Number
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.core.view_reason import MEMBERS_MAX

SESSION_LENGTH_MAX = 2 * NAME_LENGTH_MAX
ENVELOPE_BYTES_MAX = 1024
COMMAND_BYTES_MAX = PAYLOAD_BYTES_MAX - ENVELOPE_BYTES_MAX
ERROR_LENGTH_MAX = 1000

SessionName = Annotated[str, msgspec.Meta(min_length=1, max_length=SESSION_LENGTH_MAX)]
Body = Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]
ErrorText = Annotated[str, msgspec.Meta(max_length=ERROR_LENGTH_MAX)]
Recipients = Annotated[tuple[Name, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
HistoryId = Annotated[bytes, msgspec.Meta(max_length=64)]
Slot = Annotated[int, msgspec.Meta(ge=1, le=1 << 32)]


class CommandId(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """The identity of a command: the session that submitted it, and its number there, from 0."""

    session: SessionName
    number: Number

    def __str__(self) -> str:
        return f"{self.session}:{self.number}"


class Command(msgspec.Struct, frozen=True, array_like=True, tag="command", gc=False):
    """A command. The submitter needs no result with a number below `floor` any more."""

    id: CommandId
    floor: Number
    time_ns: Number
    body: Body


class NextSlot(msgspec.Struct, frozen=True, array_like=True, tag="slot", gc=False):
    """The next slot of a long command may be executed: the one with this number."""

    id: CommandId
    slot: Slot
    time_ns: Number


class Settle(msgspec.Struct, frozen=True, array_like=True, tag="settle", gc=False):
    """A command that was not applied so far must never be applied."""

    id: CommandId
    request: CommandId


class Barrier(msgspec.Struct, frozen=True, array_like=True, tag="barrier", gc=False):
    """A read of this session waits for everything that is ordered before this."""

    session: SessionName
    number: Number


class Question(msgspec.Struct, frozen=True, array_like=True, tag="question", gc=False):
    """A request that the handlers of the members with these names answer."""

    id: CommandId
    to: Recipients
    body: Body


class Answer(msgspec.Struct, frozen=True, array_like=True, tag="answer", gc=False):
    """The answer of one member to a question; `failed`: the body is the text of an error."""

    id: CommandId
    member: Name
    body: Body
    failed: bool = False


class LogTip(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """Where a log ends: the generation of its last entry, and the index of the next one."""

    generation: Number
    index: Number


class LogReport(msgspec.Struct, frozen=True, array_like=True, tag="log"):
    """What a member found on its disk when it started, for the members that found a group together.

    The log ends before the entry `index`, and its last entry is of this generation. `voters` are the members
    whose disks count; there are none if there was no log. `is_damaged`: it could not be read. `promised` is
    the last generation that the member took part in, whether or not it has an entry of it. `history` is where
    the log comes from, or would if it began now. `acknowledged` is what the log knows of the others' disks.
    """

    member: Name
    generation: Number
    index: Number
    voters: Recipients
    is_damaged: bool = False
    promised: Number = 0
    history: HistoryId = b""
    acknowledged: Annotated[dict[Name, LogTip], msgspec.Meta(max_length=MEMBERS_MAX)] = {}

    @property
    def tip(self) -> LogTip:
        """Where the log ends."""
        return LogTip(self.generation, self.index)


class Promised(msgspec.Struct, frozen=True, array_like=True, tag="promised", gc=False):
    """A member has on its disk that it takes part in this generation, and so in no other of that number."""

    member: Name
    view: Number
    generation: Number


class ChangeVoter(msgspec.Struct, frozen=True, array_like=True, tag="voter", gc=False):
    """The disk of a member counts from now on, or does not any more."""

    request: CommandId
    member: Name
    is_voter: bool


class Refill(msgspec.Struct, frozen=True, array_like=True, tag="refill", gc=False):
    """A part of the state that the members begin with; it was sent in the view with this number."""

    view: Number
    part: Number
    parts: Number
    data: Body


class Stored(msgspec.Struct, frozen=True, array_like=True, tag="stored", gc=False):
    """The disk of a member has all entries of the log before this index."""

    member: Name
    generation: Number
    index: Number


DiskMessage = LogReport | Promised | Refill | Stored
Envelope = Command | NextSlot | Settle | ChangeVoter | Barrier | Question | Answer | DiskMessage

encode_envelope = msgspec.msgpack.Encoder().encode
decode_envelope: Callable[[bytes], Envelope] = msgspec.msgpack.Decoder(Envelope).decode

"""What an application implements to be replicated: a deterministic state machine of three methods."""

from hashlib import blake2b
from typing import Protocol, runtime_checkable

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.replication.commands import CommandId

_SEED_BYTES = 8


class Applied(msgspec.Struct, frozen=True, gc=False):
    """Where in the order a command is applied: the same at every replica.

    `position` is that of the message in the order, `id` identifies the command, and `slot` counts the slots
    of a long command, from 0. `sender` is the process that broadcast it, `priority` the priority. `time_ns`
    is the time of the order, in nanoseconds since 1970: the clock of a submitter, and never less than before.
    """

    position: int
    id: CommandId
    sender: ProcessId
    priority: int
    time_ns: int
    slot: int = 0

    @property
    def seed(self) -> int:
        """A number for pseudo-random choices, the same at every replica and another one for each slot."""
        text = f"{self.id}/{self.slot}".encode()
        return int.from_bytes(blake2b(text, digest_size=_SEED_BYTES).digest())


class Continue(msgspec.Struct, frozen=True, gc=False):
    """What `apply` returns for a long command: `body` is the rest of it, for the next slot.

    Commands that are more urgent are applied in between.
    """

    body: bytes


@runtime_checkable
class StateMachine(Protocol):
    """A state that changes by commands alone.

    What a replica promises to the state machine:

    - `apply` is called once for every command, in the order of the positions, by one thread, and never while
      `snapshot` or `restore` runs. All replicas apply the same commands.
    - A command that was submitted again, for example by the next incarnation of an evicted member, is not
      applied again.
    - A command is applied only once every member of the view has received it (*safe* delivery).
    - `restore` is called before the first command that follows the snapshot, and replaces the whole state. It
      may be called again after an eviction.

    What the state machine promises:

    - `apply` depends on nothing but the state, the command and `at`: no clock, no random numbers, no order of
      a set, no files. `at.time_ns` and `at.seed` are there instead.
    - An exception that `apply` raises is the result of the command, and the state is the same at every
      replica then. `OSError`, `MemoryError` and `RecursionError` depend on the machine that the replica runs
      on: they stop the replica, before its state can differ from the others'.
    - `snapshot` returns everything that `apply` depends on; after `restore(snapshot())` the state machine
      behaves as before.

    A state machine that keeps its state in a database stores `at.position`, `at.id` and the result in the
    transaction of the command. Positions grow for ever, also when all members start again from their disks:
    then commands since the last snapshot are applied again, and those whose position is stored return the
    result that is stored with it.
    """

    def apply(self, command: bytes, at: Applied) -> "bytes | Continue":
        """Execute a command and return its result."""

    def snapshot(self) -> bytes:
        """The whole state."""

    def restore(self, data: bytes) -> None:
        """Replace the state by one that another replica returned from `snapshot`."""


@runtime_checkable
class FollowsViews(Protocol):
    """A state machine that also depends on who is in the group."""

    def on_view(self, view: View) -> None:
        """The group has these members from here on; called at the same place in the order everywhere."""

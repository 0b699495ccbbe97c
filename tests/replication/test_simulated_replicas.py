"""Replicated states in the simulator: despite crashes, cuts and repetitions all copies are equal.

Each planned broadcast becomes a command of a session of its process. Every command is delivered twice in the
stream of a replicated state, as if it had been submitted again, and must be applied once.
"""

from hashlib import blake2b

import msgspec
import pytest

from priocast.core.events import DeliveredBatch
from priocast.core.message import Message, OrderedBatch
from priocast.replication.commands import Command, CommandId, encode_envelope
from priocast.replication.replicated_state import ReplicatedState
from priocast.simulation import simulator
from priocast.simulation.application import SimulatedApplication, load
from priocast.simulation.faults import Crash, FaultOptions, NetworkCut
from priocast.simulation.workload import name_in
from replication.notes import Notes
from simulation.scenarios import group, run_without_violation

State = tuple[bytes, bytes]
_decode = msgspec.msgpack.Decoder(State).decode


def command_of(message: Message) -> bytes:
    name, _, number = name_in(message.payload).rpartition(".")
    command = Command(
        CommandId(f"{name}#1", int(number)), 0, 1_000 * int(number), f"{name} {number}".encode()
    )
    return encode_envelope(command)


class ReplicaApplication(SimulatedApplication):
    """A simulated application with a replicated state; `digests` has the states of all by position."""

    digests: dict[int, set[bytes]]
    replicas: "list[ReplicaApplication]"

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.replicated = ReplicatedState(Notes())
        self.replicas.append(self)

    def consume(self, now: int) -> int:
        head = self._member.head(now)
        if head is not None and not isinstance(head, OrderedBatch) and hasattr(head, "snapshot"):
            own, replicated = _decode(head.snapshot.data)
            self.replicated.load(replicated)
            self.state = load(own)
            self._member.consume_event(now)
            return 1 + super().consume(now)
        return super().consume(now)

    def _consume_message(self, head: OrderedBatch, now: int) -> None:
        message, position = head.message(head.taken), head.position + head.taken
        super()._consume_message(head, now)
        for _ in range(2):
            priorities = bytes([message.priority])
            payloads = [command_of(message)]
            delivered = DeliveredBatch(
                message.sender, message.level, message.number, position, payloads, priorities
            )
            self.replicated.on_message(delivered, 0)
        digest = blake2b(self.replicated.save()).digest()
        self.digests.setdefault(position, set()).add(digest)

    def _offer_snapshot(self) -> None:
        if self._member.snapshot_wanted:
            state = (self.state.save(self._state_bytes), self.replicated.save())
            self._member.offer_snapshot(msgspec.msgpack.encode(state))


@pytest.mark.parametrize("order", ["sequencer-ub", "token-ring", "agreement-sets", "reorder"])
def test_copies_of_a_state_are_equal_at_every_position(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ReplicaApplication.digests, ReplicaApplication.replicas = {}, []
    monkeypatch.setattr(simulator, "SimulatedApplication", ReplicaApplication)
    faults = FaultOptions(
        cuts=(NetworkCut(kind="isolated", members=("c",), from_us=200_000, for_us=300_000),),
        crashes=(Crash(member="d", at_us=250_000, back_after_us=300_000),),
        healed_at_us=600_000,
    )
    run = run_without_violation(
        group(
            (20,) * 5,
            rate_per_second=40,
            order=order,
            faults=faults,
            membership={"state": True, "delivery": "safe"},
        )
    )
    assert run.counters.occurred["state transfer"]
    digests = ReplicaApplication.digests
    assert len(digests) > 80
    assert {position for position, found in digests.items() if len(found) > 1} == set()
    complete = max((each.replicated for each in ReplicaApplication.replicas), key=lines_of)
    lines = complete.machine.snapshot()
    applied = msgspec.msgpack.decode(lines, type=list[str])
    assert len(applied) == len(set(applied)), "each once"
    assert len([line for line in applied if not line.startswith("d ")]) == 80, "only a crash loses any"


def lines_of(state: ReplicatedState) -> int:
    return len(state.machine.snapshot())

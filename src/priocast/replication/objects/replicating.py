"""Making an object the replica of a group: `replicate`."""

from collections.abc import Generator
from types import TracebackType
from typing import Any, Generic, TypeVar, Unpack

from priocast.core.errors import InvalidInput
from priocast.replication.objects.object_machine import ObjectMachine
from priocast.replication.objects.replicated_object import ReplicatedObject
from priocast.replication.opening import DurabilityName, open_replica, open_replica_on
from priocast.replication.replica import Replica
from priocast.runtime.node import Node
from priocast.runtime.parameters import GroupParameters, JoinParameters, check_keywords

O = TypeVar("O", bound=ReplicatedObject)  # noqa: E741  # an object


class Replicating(Generic[O]):
    """What `replicate` returns: entering it joins the group and yields the object, leaving it leaves."""

    def __init__(self, replicated_object: O, replica: Replica[ObjectMachine]) -> None:
        self._object = replicated_object
        self._replica = replica

    def __await__(self) -> Generator[Any, None, O]:
        """Replicate the object without a block, as in a notebook; `replica.close()` ends that."""
        return self.__aenter__().__await__()

    async def __aenter__(self) -> O:
        await self._replica.__aenter__()
        self._replica.machine.bind(self._replica)
        return self._object

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._replica.__aexit__(kind, error, trace)


def replicate(
    group: str,
    replicated_object: O,
    *,
    member: str,
    durability: DurabilityName = "memory",
    **parameters: Unpack[JoinParameters],
) -> Replicating[O]:
    """Replicate an object in a group, as an asynchronous context manager that yields the object.

    - `group`: the name of the group.
    - `replicated_object`: an instance of a class with `@replicated` methods, in the state in which all
      founders begin.
    - `member`: the name of this process, unique in the group.
    - `durability`: `memory`, or `disk` to survive the end of all members; as for `open_replica`.
    - `parameters`: those of `open_replica`.
    """
    check_keywords(replicate, parameters, JoinParameters)
    machine = _machine_of(replicated_object)
    replica = open_replica(group, machine, member=member, durability=durability, **parameters)
    return Replicating(replicated_object, replica)


def replicate_on(
    node: Node,
    group: str,
    replicated_object: O,
    *,
    durability: DurabilityName = "memory",
    **parameters: Unpack[GroupParameters],
) -> Replicating[O]:
    """`replicate` for a process that is in several groups.

    - `node`: this process on its network, from `open_node`.
    - `group`, `replicated_object`, `durability`: those of `replicate`.
    - `parameters`: those of `open_replica_on`.
    """
    check_keywords(replicate_on, parameters, GroupParameters)
    machine = _machine_of(replicated_object)
    replica = open_replica_on(node, group, machine, durability=durability, **parameters)
    return Replicating(replicated_object, replica)


def _machine_of(replicated_object: ReplicatedObject) -> ObjectMachine:
    if not isinstance(replicated_object, ReplicatedObject):
        raise InvalidInput(
            f"{replicated_object!r} cannot be replicated: its class must extend ReplicatedObject"
        )
    return ObjectMachine(replicated_object)

"""How replicas are opened: the group's options that a replicated state needs, and those that are rejected."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack

from priocast.core.errors import InvalidInput, InvalidOption
from priocast.log.disk_directory import DiskDirectory
from priocast.replication.replica import Replica
from priocast.replication.replicated_state import ReplicatedState
from priocast.replication.state_log import StateLog
from priocast.replication.state_machine import StateMachine
from priocast.runtime.arguments import path_of
from priocast.runtime.configuration import State
from priocast.runtime.node import Node, join
from priocast.runtime.parameters import GroupParameters, JoinParameters, check_keywords

M = TypeVar("M", bound=StateMachine)

DurabilityName = Literal["memory", "disk"]
"""What an answer waits for: that all members of the view have it, or also the disks of a majority."""


def open_replica(
    group: str,
    machine: M,
    *,
    member: str,
    durability: DurabilityName = "memory",
    **parameters: Unpack[JoinParameters],
) -> Replica[M]:
    """Replicate a state machine in a group, as an asynchronous context manager that yields the `Replica`.

    - `group`: the name of the group.
    - `machine`: the state machine of this member, in the state in which all founders begin.
    - `member`: the name of this process, unique in the group.
    - `durability`: with `disk`, answers wait for the disks of a majority of the founders, and members that
      start again begin with what is on them. All members need a `state_directory` and `disk` then.
    - `parameters`: those of `join`, except for `state`. Delivery is always *safe* and the policy *primary*.
    """
    check_keywords(open_replica, parameters, JoinParameters)
    state = _state_of(machine, parameters, durability)
    directory = path_of("state_directory", parameters.get("state_directory"))
    open_log = _log_opener(durability, directory, group, member)
    return Replica(join(group, member=member, **parameters), machine, state, open_log)


def open_replica_on(
    node: Node,
    group: str,
    machine: M,
    *,
    durability: DurabilityName = "memory",
    **parameters: Unpack[GroupParameters],
) -> Replica[M]:
    """`open_replica` for a process that is in several groups.

    - `node`: this process on its network, from `open_node`.
    - `group`, `machine`, `durability`: those of `open_replica`.
    - `parameters`: those of `Node.join`, except for `state`.
    """
    check_keywords(open_replica_on, parameters, GroupParameters)
    state = _state_of(machine, parameters, durability)
    open_log = _log_opener(durability, node.state_directory, group, node.name)
    return Replica(node.join(group, **parameters), machine, state, open_log)


def _log_opener(
    durability: DurabilityName, directory: Path | None, group: str, member: str
) -> Callable[[], StateLog] | None:
    """What opens the log of a member, if it has one."""
    if durability not in ("memory", "disk"):
        raise InvalidOption(f"durability is {durability!r}: choose 'memory' or 'disk'")
    if durability == "memory":
        return None
    if directory is None:
        raise InvalidInput("durability='disk' needs a state_directory, where the log is kept")
    path = directory / f"{group}.{member}.log"
    return lambda: StateLog(DiskDirectory(path), group, member)


def _state_of(
    machine: StateMachine, parameters: Any, durability: DurabilityName = "memory"
) -> ReplicatedState:
    """The replicated state of a new replica; sets the options of the group that it needs."""
    if not isinstance(machine, StateMachine):
        raise InvalidInput(f"machine must have the methods apply, snapshot and restore; {machine!r} has not")
    if parameters.get("state") is not None:
        raise InvalidInput(
            "state cannot be passed to a replica: the state machine's snapshot and restore are used"
        )
    membership = parameters.get("membership")
    policy = parameters.get("policy") or (membership.policy if membership is not None else "primary")
    if policy != "primary":
        raise InvalidOption(
            f"policy is {policy!r}: a replicated state needs 'primary', or its copies would differ"
        )
    delivery = parameters.get("delivery") or "safe"
    if delivery != "safe":
        raise InvalidOption(f"delivery is {delivery!r}: a replica answers on safe delivery only")
    state = ReplicatedState(machine)
    parameters["delivery"] = "safe"
    parameters["state"] = State(state.save, state.load, lambda: state.base, state.save_since, durability)
    return state

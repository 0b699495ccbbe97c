"""Quiescence: whether everything that a run should come to has come about.

Everybody who is there is in one view of all of them, every wish was broadcast, everything that was broadcast
has its place and was consumed, and the client has its answers.
"""

from collections.abc import Mapping

from priocast.simulation.client import SimulatedClient
from priocast.simulation.host import SimulatedHost
from priocast.simulation.process import SimulatedProcess


class Quiescence:
    """Says what a run still lacks."""

    def __init__(self, hosts: Mapping[str, SimulatedHost], client: SimulatedClient) -> None:
        self._hosts = hosts
        self._client = client

    def lacks(self) -> str | None:
        """The first thing that is not as it should be; None if all is well."""
        return self.group_lacks() or self._work_lacks()

    def group_lacks(self) -> str | None:
        """Why not everybody who is there is in one view of all of them; None if they are."""
        processes: list[SimulatedProcess] = []
        for host in self._present():
            if host.process is None:
                return f"{host.name} has not come back"
            processes.append(host.process)
        return self._view_lacks(processes)

    def _present(self) -> list[SimulatedHost]:
        return [host for host in self._hosts.values() if not host.gone]

    def _view_lacks(self, processes: list[SimulatedProcess]) -> str | None:
        everybody = sorted(process.member.me for process in processes)
        names = ", ".join(map(str, everybody))
        for process in processes:
            member = process.member
            if member.view is None:
                return f"{member.me} is in no view; {names} are there"
            if sorted(member.view.members) != everybody:
                members = ", ".join(map(str, member.view.members))
                return f"{member.me} is in view {member.view.id} of {members}; {names} are there"
            if member.view.id != processes[0].member.view.id:  # type: ignore[union-attr]
                return f"{member.me} is in view {member.view.id}, {everybody[0]} is in another one"
            if member.membership.changing:
                return f"{member.me} waits for the view after {member.view.id}"
        return None

    def _work_lacks(self) -> str | None:
        for host in self._present():
            assert host.process is not None
            member = host.process.member
            if not host.errands.done:
                return f"{member.me} has not broadcast all that it wishes to"
            if member.stream.awaits_state:
                return f"{member.me} waits for the group's state"
            if not host.process.application.idle or member.head(0) is not None:
                return f"{member.me} has not consumed all that there is"
            if not member.idle:
                return f"{member.me} has messages that have no place, or that others have not received"
        return None if self._client.done else "the client has no answer"

"""Quiescence: whether a run has nothing left to do.

A run is quiescent when all running processes are in one view of all of them, every planned broadcast was
submitted, everything that was submitted is ordered and consumed, and the client has its answers.
"""

from collections.abc import Mapping

from priocast.simulation.client import SimulatedClient
from priocast.simulation.host import SimulatedHost
from priocast.simulation.process import SimulatedProcess
from priocast.simulation.service_workload import ServicePlan


class Quiescence:
    """Says what a run still waits for."""

    def __init__(
        self,
        hosts: Mapping[str, SimulatedHost],
        client: SimulatedClient,
        service_plans: Mapping[str, ServicePlan],
    ) -> None:
        self._hosts = hosts
        self._client = client
        self._service_plans = service_plans

    def pending(self) -> str | None:
        """The first thing that is not done, as a sentence; None if the run is quiescent."""
        return self.pending_view() or self._pending_work()

    def pending_view(self) -> str | None:
        """Why the running processes are not yet in one view of all of them; None if they are."""
        processes: list[SimulatedProcess] = []
        for host in self._present():
            if host.process is None:
                return f"{host.name} has not restarted"
            processes.append(host.process)
        return self._view_difference(processes)

    def _present(self) -> list[SimulatedHost]:
        return [host for host in self._hosts.values() if not host.gone]

    def _view_difference(self, processes: list[SimulatedProcess]) -> str | None:
        running = sorted(process.member.me for process in processes)
        names = ", ".join(map(str, running))
        for process in processes:
            member = process.member
            if member.view is None:
                return f"{member.me} is in no view; {names} are running"
            if sorted(member.view.members) != running:
                members = ", ".join(map(str, member.view.members))
                return f"{member.me} is in view {member.view.id} of {members}; {names} are running"
            if member.view.id != processes[0].member.view.id:  # type: ignore[union-attr]
                return f"{member.me} is in view {member.view.id}, {running[0]} is in another one"
            if member.membership.changing:
                return f"{member.me} waits for the view after {member.view.id}"
        return None

    def _pending_work(self) -> str | None:
        for host in self._present():
            assert host.process is not None
            member = host.process.member
            if not host.plan.done or member.stream.awaits_state:
                return f"{member.me} has not broadcast all planned messages, or waits for the group's state"
            services = member.services
            if not self._service_plans[host.name].done or services.in_flight or services.held:
                return f"{member.me} has messages with a quality of service that are not sent or delivered"
            if not host.process.application.idle or member.head(0) is not None:
                return f"{member.me} has not consumed all messages"
            if not member.idle:
                return f"{member.me} has messages that are not ordered, or that others have not received"
        return None if self._client.done else "the client has no answer"

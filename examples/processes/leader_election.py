"""One leader at a time: each of three processes leads once, in a term of its own."""

import launch
import priocast


async def member(name: str, network: priocast.JoinParameters) -> None:
    election = priocast.LeaderElection()
    async with priocast.replicate("boss", election, member=name, **network), election.lead() as term:
        assert election.is_leader
        launch.show(f"{name} leads in term {term}")


launch.run(member)

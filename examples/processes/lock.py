"""One process at a time: three processes take turns with a lock; its token grows with every holder."""

import launch
import priocast


async def member(name: str, network: priocast.JoinParameters) -> None:
    lock = priocast.ReplicatedLock()
    replicated = priocast.replicate("lock", lock, member=name, **network)
    async with replicated, lock.hold(lease_seconds=30) as token:
        launch.show(f"{name} holds the lock with token {token}")


launch.run(member)

"""Unique numbers: three processes draw from one counter."""

import launch
import priocast

NUMBERS = 3


async def member(name: str, network: priocast.JoinParameters) -> None:
    counter = priocast.ReplicatedCounter()
    async with priocast.replicate("numbers", counter, member=name, **network):
        drawn = [await counter.add() for _ in range(NUMBERS)]
        await counter.replica.wait_until(lambda: counter.local == NUMBERS * len(launch.NAMES))
        launch.show(f"{name} drew {drawn}")


launch.run(member)

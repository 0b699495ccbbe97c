"""A key-value store with a copy in each of three processes."""

import launch
import priocast


async def member(name: str, network: priocast.JoinParameters) -> None:
    store = priocast.ReplicatedDict[str, str]()
    async with priocast.replicate("kv", store, member=name, **network):
        await store.set(name, f"hello from {name}")
        winner = await store.setdefault("first", name)
        await store.replica.wait_until(lambda: len(store.local) == len(launch.NAMES) + 1)
        launch.show(f"{name}: {winner} was first of {sorted(store.local)}")


launch.run(member)

"""A replicated key-value store: three members, each with a copy."""

import asyncio

import priocast


async def member(name: str, hub: priocast.MemoryHub) -> None:
    store = priocast.ReplicatedDict[str, str]()
    async with priocast.replicate("kv", store, member=name, hub=hub, size=3):
        await store.set(name, f"hello from {name}")
        await store.replica.wait_until(lambda: len(store.local) == 3)
        print(name, sorted(await store.items()))


async def main() -> None:
    hub = priocast.MemoryHub()
    await asyncio.gather(*(member(name, hub) for name in "abc"))


asyncio.run(main())

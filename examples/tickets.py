"""Three members of one group in one process: all deliver the same messages in the same order."""

import asyncio

import priocast


async def member(name: str, hub: priocast.MemoryHub) -> None:
    async with priocast.join("tickets", member=name, hub=hub, size=3) as group:
        await group.broadcast(f"two seats for {name}".encode())
        await group.broadcast(f"{name} says stop".encode(), priority=priocast.URGENT)
        async for event in group:
            if isinstance(event, priocast.Delivery):
                print(name, event.position, event.message.payload.decode())
                if event.position == 5:
                    break


async def main() -> None:
    hub = priocast.MemoryHub()
    await asyncio.gather(*(member(name, hub) for name in "abc"))


asyncio.run(main())

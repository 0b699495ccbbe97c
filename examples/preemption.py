"""Three replicas with queued commands: an urgent command is executed next at all of them."""

import asyncio

import priocast


async def replica(name: str, hub: priocast.MemoryHub) -> None:
    """Execute commands of 10 ms each, until all are done."""
    async with priocast.join("robots", member=name, hub=hub, size=3, order="reorder") as group:
        await group.broadcast_many([f"step of {name}".encode()] * 20)
        async for event in group:
            if not isinstance(event, priocast.Delivery):
                continue
            if event.message.priority == priocast.URGENT:
                print(f"{name}: {event.message.payload.decode()}, after {event.position} of 60 steps")
            if event.position == 10 and name == "b":
                await group.broadcast(b"stop", priority=priocast.URGENT)
            if event.position == 60:
                break
            await asyncio.sleep(0.01)


async def main() -> None:
    hub = priocast.MemoryHub()
    await asyncio.gather(*(replica(name, hub) for name in "abc"))


asyncio.run(main())

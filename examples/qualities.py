"""Three members that send with qualities of service: each message pays for the agreement that it needs."""

import asyncio

import priocast

MESSAGES = {
    "temperature 21": priocast.UNRELIABLE,
    "which of you has room?": priocast.at_least(2),
    "the shop is open": priocast.RELIABLE,
    "sell seat 7": priocast.ATOMIC,
}


async def sender(group: priocast.Group) -> None:
    for text, quality in MESSAGES.items():
        receipt = await group.send(text.encode(), quality=quality)
        print(f"a: {quality} answered by {', '.join(sorted(receipt.answered)) or 'nobody'}")
    try:
        await group.send(b"close the door", quality=priocast.delta(20))
    except priocast.InvalidInput as error:
        print(f"a: {error}")


async def member(name: str, hub: priocast.MemoryHub) -> None:
    async with priocast.join("shop", member=name, hub=hub, size=3) as group, asyncio.TaskGroup() as tasks:
        if name == "a":
            tasks.create_task(sender(group))
        taken = 0
        async for event in group:
            if isinstance(event, priocast.ServiceDelivery):
                print(f"{name}: {event.payload.decode()} ({event.quality})")
                taken += 1
                if taken == len(MESSAGES):
                    break


async def main() -> None:
    hub = priocast.MemoryHub()
    await asyncio.gather(*(member(name, hub) for name in "abc"))


asyncio.run(main())

"""Three processes broadcast, and all print the same messages in the same order."""

import launch
import priocast

MESSAGES = 6


async def member(name: str, network: priocast.JoinParameters) -> None:
    async with priocast.join("tickets", member=name, **network) as group:
        await group.broadcast(f"two seats for {name}".encode())
        await group.broadcast(f"{name} says stop".encode(), priority=priocast.URGENT)
        delivered = 0
        async for event in group:
            if isinstance(event, priocast.Delivery):
                launch.show(f"{name} {event.position} {event.message.payload.decode()}")
                delivered += 1
                if delivered == MESSAGES:
                    break


launch.run(member)

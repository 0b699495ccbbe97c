"""A process that is not a member has members broadcast for it: c is a client of the group of a and b."""

import launch
import priocast


async def member(name: str, network: priocast.JoinParameters) -> None:
    if name == "c":
        async with priocast.open_client("tickets", client=name, peers=network["peers"] or []) as client:
            position = await client.send(b"one seat", priority=priocast.URGENT)
            launch.show(f"c: has position {position}")
        return
    async with priocast.join("tickets", member=name, **network | {"founders": 2}) as group:
        async for event in group:
            if isinstance(event, priocast.Delivery):
                launch.show(f"{name}: {event.message.payload.decode()} at {event.position}")
                break


launch.run(member)

"""Messages beside the total order, each with as much agreement as it pays for."""

import launch
import priocast


async def member(name: str, network: priocast.JoinParameters) -> None:
    async with priocast.join("telemetry", member=name, **network) as group:
        receipt = await group.send(f"from {name}".encode(), quality=priocast.RELIABLE)
        launch.show(f"{name}: answered by {', '.join(sorted(receipt.answered))}")
        await group.broadcast(b"answered")  # nobody leaves before all have been answered
        received = 0
        async for event in group:
            received += isinstance(event, priocast.ServiceDelivery | priocast.Delivery)
            if received == 2 * len(launch.NAMES):
                break


launch.run(member)

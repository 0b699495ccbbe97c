"""Work that three processes share, the most urgent first: each item is done once."""

import launch
import priocast

ITEMS = {
    "clean up": priocast.BACKGROUND,
    "sell a seat": priocast.ROUTINE,
    "stop the pump": priocast.URGENT,
}


async def member(name: str, network: priocast.JoinParameters) -> None:
    queue = priocast.ReplicatedQueue[str]()
    async with priocast.replicate("work", queue, member=name, **network):
        if name == "a":
            for item, priority in ITEMS.items():
                await queue.put(item, priority)
        work = await queue.take()
        assert await queue.done(work.number)
        launch.show(f"{name}: {work.item}")


launch.run(member)

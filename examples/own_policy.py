"""An adaptation policy of one's own: whoever has sent last gets almost all slots of the adaptive order."""

import asyncio
from collections.abc import Sequence

import priocast

MESSAGES = 40


@priocast.register_policy
class OneSpeaker(priocast.AdaptationPolicy):
    """Gives 32 slots to the member that has sent last, and 1 to each other one."""

    NAME = "one-speaker"
    speaker = 0

    def on_messages(self, rank: int, count: int, urgency: int, now: int) -> None:
        self.speaker = rank

    def proposed(self, weights: Sequence[int], now: int) -> tuple[int, ...] | None:
        wanted = tuple(32 if rank == self.speaker else 1 for rank in range(self.size))
        return None if self.rank or wanted == tuple(weights) else wanted


async def member(name: str, hub: priocast.MemoryHub) -> None:
    options = priocast.OrderingOptions(adaptation=OneSpeaker.NAME)
    async with priocast.join(
        "talk", member=name, hub=hub, size=3, order="adaptive", options=options
    ) as group:
        async for event in group:
            if isinstance(event, priocast.Delivery):
                print(name, event.stamp, event.message.payload.decode())
                if event.position == MESSAGES - 1:
                    break
            elif isinstance(event, priocast.ViewChange) and len(event.view.members) == 3 and name == "b":
                for number in range(MESSAGES):
                    await group.broadcast(f"sentence {number}".encode())


async def main() -> None:
    hub = priocast.MemoryHub()
    await asyncio.gather(*(member(name, hub) for name in "abc"))


asyncio.run(main())

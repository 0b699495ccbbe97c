"""A replicated counter: two members found the group, a third joins later and receives the current value."""

import asyncio

import priocast


class Counter:
    """The application: its state is a number."""

    def __init__(self) -> None:
        self.value = 0

    def save(self) -> bytes:
        return str(self.value).encode()

    def load(self, data: bytes) -> None:
        self.value = int(data)


async def count(name: str, hub: priocast.MemoryHub, until: int) -> None:
    """Be a member until the counter reaches this value."""
    counter = Counter()
    state = priocast.State(counter.save, counter.load)
    async with priocast.join("counter", member=name, hub=hub, size=2, state=state) as group:
        await group.broadcast_many([b"+1"] * 100)
        async for event in group:
            match event:
                case priocast.ViewChange(view=view, reason=reason):
                    print(name, [member.name for member in view.members], reason)
                case priocast.Restored():
                    print(name, "starts at", counter.value)
                case priocast.Delivery(message=message):
                    counter.value += int(message.payload)
            if counter.value == until:
                print(name, "has counted to", counter.value)
                break


async def main() -> None:
    hub = priocast.MemoryHub()
    founders = asyncio.gather(*(count(name, hub, until=300) for name in "ab"))
    await asyncio.sleep(0.5)
    await asyncio.gather(founders, count("c", hub, until=300))


asyncio.run(main())

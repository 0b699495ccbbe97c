"""A network of your own: processes of one machine that talk over Unix sockets in a shared directory.

A process connects to every socket that it finds, and sends over the connections that it made. The directory
alone decides who may join. `priocast.network.interface` says what a network must do.
"""

import asyncio
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

import priocast
from priocast.network.interface import RELIABLE_NETWORK, Frame, Receiver
from priocast.network.ports import OpenPort, Ports

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(tuple[int, priocast.ProcessId, list[Frame]]).decode


class UnixPort(OpenPort):
    def __init__(
        self, network: "UnixNetwork", group: str, process: priocast.ProcessId, receiver: Receiver
    ) -> None:
        super().__init__(group, process, receiver)
        self.network = network

    def send(self, peer: str, frames: list[Frame]) -> None:
        if writer := self.network.writers.get(peer):
            packet = encode((self.group_hash, self.process, frames))
            writer.write(len(packet).to_bytes(4) + packet)

    def flush(self) -> None:
        pass  # nothing is delayed

    def close(self) -> None:
        self.network.ports.remove(self)


class UnixNetwork:
    link_options = RELIABLE_NETWORK

    def __init__(self, directory: Path, name: str) -> None:
        self.path = directory / name
        self.ports: Ports[UnixPort] = Ports(name)
        self.rejections = self.ports.rejections
        self.writers: dict[str, asyncio.StreamWriter] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.opened: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self.server = await asyncio.start_unix_server(self.accept, self.path)
        self.tasks.add(asyncio.create_task(self.find_peers()))

    def open(self, group: str, process: priocast.ProcessId, receiver: Receiver) -> UnixPort:
        port = UnixPort(self, group, process, receiver)
        self.ports.add(port)
        for peer in list(self.writers):
            receiver.reachable(peer)
        return port

    async def close(self) -> None:
        self.server.close()
        self.writers = {}
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for writer in self.opened:
            writer.close()  # also if its task was cancelled before it began
            with suppress(OSError):
                await writer.wait_closed()  # until everything is written
        self.path.unlink(missing_ok=True)

    def unreached(self) -> list[str]:
        return []  # no addresses are configured

    async def find_peers(self) -> None:
        while True:
            for path in self.path.parent.iterdir():
                if path != self.path and path.name not in self.writers:
                    with suppress(OSError):
                        await self.connect(path.name)
            await asyncio.sleep(0.02)

    async def connect(self, peer: str) -> None:
        reader, writer = await asyncio.open_unix_connection(self.path.with_name(peer))
        self.writers[peer] = writer
        self.opened.add(writer)
        self.tasks.add(asyncio.create_task(self.watch(peer, reader, writer)))
        for port in self.ports.all():
            port.receiver.reachable(peer)

    async def watch(self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError):
            await reader.read()  # returns when the peer is gone
        self.opened.discard(writer)
        if self.writers.get(peer) is writer:
            del self.writers[peer]

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened.add(writer)
        self.tasks.add(asyncio.create_task(self.receive(reader, writer)))

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        introduced = False
        with closing(writer), suppress(OSError, asyncio.IncompleteReadError):  # until the peer is gone
            while True:
                packet = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                group_hash, peer, frames = decode(packet)
                if not introduced and peer.name not in self.writers:
                    await self.connect(peer.name)
                introduced = True
                self.ports.receive(group_hash, peer, frames)


async def member(name: str, directory: Path) -> None:
    network = UnixNetwork(directory, name)
    async with priocast.join("tickets", member=name, network=network, size=3) as group:
        await group.broadcast(f"two seats for {name}".encode())
        async for event in group:
            if isinstance(event, priocast.Delivery):
                print(name, event.position, event.message.payload.decode())
                if event.position == 2:
                    break


async def main() -> None:
    with TemporaryDirectory() as directory:
        await asyncio.gather(*(member(name, Path(directory)) for name in "abc"))


if __name__ == "__main__":
    asyncio.run(main())

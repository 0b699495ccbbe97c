"""A state machine of bytes, replicated in three processes: what objects and databases are built on."""

import launch
import priocast


class Log:
    """Lines in the order in which they were submitted."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def apply(self, command: bytes, at: priocast.Applied) -> bytes:
        self.lines.append(command)
        return str(at.position).encode()

    def snapshot(self) -> bytes:
        return b"\n".join(self.lines)

    def restore(self, data: bytes) -> None:
        self.lines = data.split(b"\n") if data else []


async def member(name: str, network: priocast.JoinParameters) -> None:
    log = Log()
    async with priocast.open_replica("log", log, member=name, **network) as replica:
        await replica.submit(f"from {name}".encode())
        await replica.wait_until(lambda: len(log.lines) == len(launch.NAMES))
        launch.show(f"{name}: {b'; '.join(log.lines).decode()}")


launch.run(member)

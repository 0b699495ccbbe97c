"""A state machine for tests, which records every command."""

import msgspec

from priocast.replication.state_machine import Applied, Continue


class Notes:
    """A state machine: a command is appended and counted.

    `fail …` raises an exception, `long N` takes N slots, `disk` fails as a full disk does.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.restored = 0

    def apply(self, command: bytes, at: Applied) -> bytes | Continue:
        text = command.decode()
        word, _, rest = text.partition(" ")
        if word == "fail":
            raise ValueError(rest)
        if word == "disk":
            raise OSError(28, "No space left on device")
        self.lines.append(text)
        if word == "long" and int(rest) > 1:
            return Continue(f"long {int(rest) - 1}".encode())
        return str(len(self.lines)).encode()

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.lines)

    def restore(self, data: bytes) -> None:
        self.restored += 1
        self.lines = msgspec.msgpack.decode(data, type=list[str])

"""Network namespaces: members between which the network can really be cut.

Each member gets a namespace with one interface; a bridge in another namespace connects them, so
nothing outside is affected. A cut in one direction is a blackhole route. If namespaces are unavailable,
`unavailable` says why.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_SUBNET = "10.213.7"
_PORT = 7400


def unavailable() -> str | None:
    """The reason why namespaces cannot be created here, or None."""
    probe = f"pcprobe{os.getpid()}"
    try:
        _ip("netns", "add", probe)
    except FileNotFoundError:
        return "there is no ip command"
    except subprocess.CalledProcessError as error:
        return f"ip netns add: {error.stderr.decode(errors='replace').strip()}"
    _ip("netns", "del", probe)
    return None


class Namespaces:
    """A network of namespaces, one for each name."""

    def __init__(self, names: Sequence[str]) -> None:
        self._prefix = f"pc{os.getpid()}"
        self._hosts = {name: index for index, name in enumerate(names, 1)}

    @property
    def addresses(self) -> dict[str, str]:
        """Where each member listens."""
        return {name: f"{self._host(name)}:{_PORT}" for name in self._hosts}

    def within(self, name: str) -> list[str]:
        """The prefix of a command that runs in a member's namespace."""
        return ["ip", "netns", "exec", self._space(name)]

    def cut(self, source: str, target: str) -> None:
        """Drop everything from one member to another."""
        _ip("-n", self._space(source), "route", "replace", "blackhole", f"{self._host(target)}/32")

    def cut_apart(self, *sides: str) -> None:
        """Partition the members into sides, each a text of one-letter names."""
        for side in sides:
            for source in side:
                for target in "".join(sides):
                    if target not in side:
                        self.cut(source, target)

    def heal(self) -> None:
        """Remove all cuts."""
        for source in self._hosts:
            for target in self._hosts:
                with suppress(subprocess.CalledProcessError):
                    _ip("-n", self._space(source), "route", "del", "blackhole", f"{self._host(target)}/32")

    def make(self) -> None:
        """Create all namespaces, and the bridge between them."""
        switch = self._space("switch")
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for name, index in self._hosts.items():
            space = self._space(name)
            _ip("netns", "add", space)
            port = f"port{index}"
            _ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", switch)
            _ip("-n", switch, "link", "set", port, "master", "bridge", "up")
            _ip("-n", space, "address", "add", f"{self._host(name)}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")

    def remove(self) -> None:
        """Remove everything that was created."""
        for name in (*self._hosts, "switch"):
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", self._space(name))

    def _space(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def _host(self, name: str) -> str:
        return f"{_SUBNET}.{self._hosts[name]}"


@contextmanager
def namespaces(names: Sequence[str]) -> Iterator[Namespaces]:
    """A network of namespaces for the duration of a `with` block."""
    made = Namespaces(names)
    try:
        made.make()
        yield made
    finally:
        made.remove()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)  # noqa: S603, S607 - fixed arguments

"""Runs an example as three processes on this machine, which know each other's addresses.

    python examples/processes/lock.py                     three processes
    python examples/processes/lock.py a ADDRESS…          one of three: the addresses are those of a, b and c

So the same file runs on three machines.
"""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable

import priocast
from priocast.testing.addresses import free_addresses

NAMES = ("a", "b", "c")
Member = Callable[[str, priocast.JoinParameters], Awaitable[None]]


def run(member: Member) -> None:
    """Run one member if the command line names it, otherwise a process for each, to the end."""
    if len(sys.argv) == 1:
        _start_all()
        return
    name, *addresses = sys.argv[1:]
    listen = addresses.pop(NAMES.index(name))
    asyncio.run(_run(member, name, {"listen": listen, "peers": addresses}))


def show(line: str) -> None:
    """Print a line in one piece: three processes print to one terminal."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _run(member: Member, name: str, network: priocast.JoinParameters) -> None:
    await member(name, network)


def _start_all() -> None:
    addresses = [str(address) for address in free_addresses(len(NAMES))]
    started = [subprocess.Popen([sys.executable, sys.argv[0], name, *addresses]) for name in NAMES]
    codes = [process.wait() for process in started]
    sys.exit(max(codes, key=abs))

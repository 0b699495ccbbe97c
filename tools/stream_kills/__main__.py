"""`python -m tools.stream_kills --kills 20`: the driver is killed before, in and after a batch, and members.

Three members with feeds run as processes, and a client sends numbers to them. Each kill of the driver is at a
chosen moment of a batch; each kill of a member is followed by its restart. At the end, the output must hold
each position once, in order, and the numbers must be those that the group ordered.
"""

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track

import priocast
from priocast.feed.feed_reader import FeedReader
from priocast.testing.addresses import free_addresses

GROUP = "tickets"
NAMES = "abc"
MOMENTS = ("before", "in", "after")
MEMBER = "member"
_PATIENCE_SECONDS = 300.0
_SEND_SECONDS = 0.002


class Member:
    """A member with a feed, in a process of its own that can be killed and started again."""

    def __init__(self, name: str, listen: list[str], feeds: list[str], directory: Path) -> None:
        index = NAMES.index(name)
        self._arguments = [
            *(sys.executable, "-m", "priocast", "feed", GROUP, "--member", name, "--listen", listen[index]),
            *("--address", feeds[index], "--directory", str(directory / name), "--founders", str(len(NAMES))),
        ]
        for other in range(len(NAMES)):
            if other != index:
                self._arguments += ["--peer", listen[other], "--other", feeds[other]]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


class Sender(threading.Thread):
    """A client that sends numbers until it is told to stop; `sent` were answered."""

    def __init__(self, peers: list[str]) -> None:
        super().__init__(daemon=True)
        self._peers = peers
        self.sent = 0
        self.stopping = False

    def run(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        async with priocast.open_client(GROUP, client="sender", peers=self._peers) as client:
            while not self.stopping:
                await client.send(b"%d" % self.sent, timeout_seconds=_PATIENCE_SECONDS)
                self.sent += 1
                await asyncio.sleep(_SEND_SECONDS)


def run_query_until(moment: str, arguments: list[str], batches: int) -> None:
    """Start the query, and kill it at this moment of one of its batches."""
    command = [sys.executable, "-m", "tools.stream_kills.query", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        seen = 0
        for line in process.stdout:
            seen += line.startswith(f"{moment} ")
            if seen > batches:
                break
        process.kill()


def problems_in(out: Path, expected: list[bytes]) -> list[str]:
    """What is wrong with the output."""
    lines = [line.split() for path in sorted(out.glob("[0-9]*")) for line in path.read_text().splitlines()]
    positions = [int(position) for position, _ in lines]
    problems = []
    if positions != list(range(len(positions))):
        problems.append(f"positions are not 0 to {len(positions) - 1}, once and in order")
    if [number.encode() for _, number in lines] != expected[: len(lines)]:
        problems.append("the output is not what the group ordered")
    return problems


def campaign(plan: list[str], rng: random.Random, directory: Path, console: Console) -> list[str]:
    """Kill as planned; return what is wrong with the output."""
    out = directory / "out"
    out.mkdir()
    addresses = [str(address) for address in free_addresses(2 * len(NAMES))]
    listen, feeds = addresses[: len(NAMES)], addresses[len(NAMES) :]
    members = [Member(name, listen, feeds, directory) for name in NAMES]
    for member in members:
        member.start()
    sender = Sender(listen)
    sender.start()
    arguments = [GROUP, ",".join(feeds), str(out), str(directory / "checkpoint")]
    try:
        for kill in track(plan, "kills", console=console):
            if kill == MEMBER:
                member = rng.choice(members)
                member.kill()
                member.start()
                _wait_for_more(sender)
            else:
                run_query_until(kill, arguments, rng.randrange(3))
        sender.stopping = True
        sender.join()
        with FeedReader(GROUP, feeds, wait_seconds=_PATIENCE_SECONDS) as reader:
            expected = [message.payload for part in reader.read(*reader.widest_range()) for message in part]
    finally:
        for member in members:
            member.kill()
    problems = problems_in(out, expected)
    rows = sum(len(path.read_text().splitlines()) for path in out.glob("[0-9]*"))
    if expected != [b"%d" % number for number in range(len(expected))] or len(expected) < sender.sent:
        problems.append(f"the group has {len(expected)} messages, and {sender.sent} were answered")
    console.print(f"{sender.sent:,} messages were answered, and the output has {rows:,} rows")
    return problems


def main() -> int:
    """Run the campaign; the exit code is 1 if anything was lost, repeated or out of order."""
    parser = argparse.ArgumentParser(prog="tools.stream_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of the driver at each moment, and of members")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, console = random.Random(options.seed), Console()
    plan = [moment for moment in (*MOMENTS, MEMBER) for _ in range(options.kills)]
    rng.shuffle(plan)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="priocast-kills-") as scratch:
        problems = campaign(plan, rng, Path(scratch), console)
    console.print(f"{len(plan)} kills in {time.monotonic() - started:,.0f} s")
    for problem in problems:
        console.print(f"[red]{problem}[/]")
    return 1 if problems else 0


def _wait_for_more(sender: Sender) -> None:
    """Wait until the group orders again."""
    before, deadline = sender.sent, time.monotonic() + _PATIENCE_SECONDS
    while sender.sent < before + 10 and time.monotonic() < deadline:
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
